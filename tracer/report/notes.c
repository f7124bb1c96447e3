// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/notes.h"

#include <string.h>

#include "tracer/report/html.h"

enum { NOTES_MAX = 64, TEXTS_SHOWN = 4 };

// What is missing, in the words that stand behind a count.
static const struct {
    const char *name, *one, *many;
} losses[] = {
    {"ticks-lost", "tick lost", "ticks lost"},
    {"threads-without-ticks", "thread without ticks", "threads without ticks"},
    {"locks-untold", "lock whose waits are not told", "locks whose waits are not told"},
    {"tables-missing", "module without unwind tables", "modules without unwind tables"},
    {"processes-not-followed", "process not followed", "processes not followed"},
    {"processes-not-recorded", "process not recorded", "processes not recorded"},
    {"processes-without-ticks", "process without ticks", "processes without ticks"},
    {"processes-with-unknown-ticks", "process whose ticks were not counted", "processes whose ticks were not counted"},
};
enum { LOSS_COUNT = sizeof losses / sizeof *losses };

static const struct {
    const char *name, *what;
} ticks[] = {
    {"ticks-taken", "taken"},
    {"ticks-late", "late: came together with another one"},
    {"ticks-kernel", "fell into the kernel, where none are taken"},
    {"ticks-lost", "lost"},
};
enum { TICK_COUNT = sizeof ticks / sizeof *ticks };

bool report_notes_tell_loss(const struct trace *trace)
{
    for (size_t i = 0; i < LOSS_COUNT; i++)
        if (trace_note_sum(trace, losses[i].name))
            return true;
    return false;
}

void report_notes_verdict(struct sink *sink, const struct trace *trace, const char **separator)
{
    for (size_t i = 0; i < LOSS_COUNT; i++) {
        uint64_t count = trace_note_sum(trace, losses[i].name);
        if (count == 0)
            continue;
        sink_text(sink, *separator);
        sink_text(sink, "<b>");
        report_html_count(sink, count);
        sink_text(sink, "</b> ");
        sink_text(sink, count == 1 ? losses[i].one : losses[i].many);
        *separator = ", ";
    }
}

void report_notes_ticks(struct sink *sink, const struct trace *trace)
{
    uint64_t due = trace_note_sum(trace, "ticks-due"), late = trace_note_sum(trace, "ticks-late");
    uint64_t kernel = trace_note_sum(trace, "ticks-kernel");
    if (due == 0 || late + kernel == 0)
        return;
    sink_text(sink, " Of ");
    report_html_count(sink, due);
    sink_text(sink, " ticks due, ");
    if (kernel) {
        report_html_count(sink, kernel);
        sink_text(sink, " fell into the kernel");
    }
    sink_text(sink, kernel && late ? ", " : "");
    if (late) {
        report_html_count(sink, late);
        sink_text(sink, " came late, together with another one");
    }
    sink_text(sink, ".");
}

static void cell_of_share(struct sink *sink, uint64_t part, uint64_t whole)
{
    sink_text(sink, "<td class=\"number\">");
    sink_fixed(sink, whole ? (int64_t)(10000.0 * (double)part / (double)whole + 0.5) : 0, 2);
    sink_text(sink, " %</td>");
}

static bool is_there(const struct trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->note_count; i++)
        if (strcmp(trace->notes[i].name, name) == 0)
            return true;
    return false;
}

static void ticks_table(struct sink *sink, const struct trace *trace)
{
    uint64_t due = trace_note_sum(trace, "ticks-due");
    if (due == 0)
        return;
    sink_text(sink, "<table class=\"counts\"><caption>Ticks that were due by processor time, and what became of them"
                    "</caption>\n<thead><tr><th scope=\"col\">ticks</th><th scope=\"col\" class=\"number\">count</th>"
                    "<th scope=\"col\" class=\"number\">share</th></tr></thead>\n<tbody>\n"
                    "<tr><th scope=\"row\">all</th><td class=\"number\" data-count=\"ticks-due\">");
    report_html_count(sink, due);
    sink_text(sink, "</td>");
    cell_of_share(sink, due, due);
    sink_text(sink, "</tr>\n");
    for (size_t i = 0; i < TICK_COUNT; i++) {
        uint64_t count = trace_note_sum(trace, ticks[i].name);
        if (!is_there(trace, ticks[i].name))
            continue;
        sink_text(sink, "<tr><th scope=\"row\">");
        sink_text(sink, ticks[i].what);
        sink_text(sink, "</th><td class=\"number\" data-count=\"");
        sink_text(sink, ticks[i].name);
        sink_text(sink, "\">");
        report_html_count(sink, count);
        sink_text(sink, "</td>");
        cell_of_share(sink, count, due);
        sink_text(sink, "</tr>\n");
    }
    sink_text(sink, "</tbody></table>\n");
}

static bool is_tick(const char *name)
{
    bool is_one = strcmp(name, "ticks-due") == 0;
    for (size_t i = 0; i < TICK_COUNT; i++)
        is_one = is_one || strcmp(name, ticks[i].name) == 0;
    return is_one;
}

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), its = strlen(end);
    return length >= its && strcmp(name + length - its, end) == 0;
}

// Different texts of one name, the first ones.
static void texts_of(struct sink *sink, const struct trace *trace, const char *name)
{
    const char *shown[TEXTS_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < trace->note_count && count < TEXTS_SHOWN; i++) {
        const struct trace_note *note = &trace->notes[i];
        bool is_new = note->text && strcmp(note->name, name) == 0;
        for (size_t j = 0; is_new && j < count; j++)
            is_new = strcmp(shown[j], note->text) != 0;
        if (!is_new)
            continue;
        sink_text(sink, count ? ", " : "");
        report_html_text(sink, note->text);
        shown[count++] = note->text;
    }
}

// Of times the longest: they are medians and the like, of which there is no sum.
static uint64_t longest_of(const struct trace *trace, const char *name)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < trace->note_count; i++)
        if (strcmp(trace->notes[i].name, name) == 0 && trace->notes[i].value > longest)
            longest = trace->notes[i].value;
    return longest;
}

// "recording-ended": what comes from a file may be anything, so it is taken as text.
static void name_in_words(struct sink *sink, const char *name, size_t length)
{
    char words[64];
    if (length >= sizeof words)
        length = sizeof words - 1;
    for (size_t i = 0; i < length; i++)
        words[i] = name[i] == '-' ? ' ' : name[i];
    words[length] = '\0';
    report_html_text(sink, words);
}

static void note_row(struct sink *sink, const struct trace *trace, const struct trace_note *note)
{
    bool is_time = !note->text && ends_in(note->name, "-ns");
    sink_text(sink, "<tr><th scope=\"row\">");
    name_in_words(sink, note->name, strlen(note->name) - (is_time ? strlen("-ns") : 0));
    sink_text(sink, "</th><td class=\"number\" data-count=\"");
    report_html_text(sink, note->name);
    sink_text(sink, "\">");
    if (note->text)
        texts_of(sink, trace, note->name);
    else if (is_time)
        report_html_time(sink, longest_of(trace, note->name));
    else
        report_html_count(sink, trace_note_sum(trace, note->name));
    sink_text(sink, "</td></tr>\n");
}

// What belongs to one process only says nothing about all: its parent, its command line.
static bool is_shown(const char *name)
{
    return !is_tick(name) && strcmp(name, "parent-pid") != 0 && strcmp(name, "command") != 0;
}

void report_notes_tables(struct sink *sink, const struct trace *trace)
{
    ticks_table(sink, trace);
    const char *seen[NOTES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < trace->note_count && count < NOTES_MAX; i++) {
        const struct trace_note *note = &trace->notes[i];
        bool is_new = is_shown(note->name) && (note->text || note->value);
        for (size_t j = 0; is_new && j < count; j++)
            is_new = strcmp(seen[j], note->name) != 0;
        if (!is_new)
            continue;
        if (count == 0)
            sink_text(sink, "<table class=\"counts\" id=\"notes\"><caption>Noted by the recorder</caption>\n<tbody>\n");
        note_row(sink, trace, note);
        seen[count++] = note->name;
    }
    if (count)
        sink_text(sink, "</tbody></table>\n");
}

bool report_notes_stops(const struct trace *trace, uint64_t *median_ns, uint64_t *longest_ns)
{
    *median_ns = longest_of(trace, "stop-median-ns");
    *longest_ns = longest_of(trace, "stop-longest-ns");
    return *median_ns != 0;
}
