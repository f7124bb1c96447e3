// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "formats/qut_trace_file.h"
#include "tracer/info/info.h"

enum { PROCESSES_SHOWN = 20, NOTES_SHOWN = 40 };

static const char *end_text(const struct trace_process *process)
{
    switch (process->end) {
    case QUT_TRACE_FILE_END_CLOSED: return "";
    case QUT_TRACE_FILE_END_DIED: return process->is_complete ? "" : ", ended without closing its trace";
    case QUT_TRACE_FILE_END_STOPPED: return ", went on";
    case QUT_TRACE_FILE_END_EXEC: return ", went on as another program";
    default: return "";
    }
}

static double seconds_of(const struct trace_process *process)
{
    return process->end_ns > process->start_ns ? (double)(process->end_ns - process->start_ns) / 1e9 : 0;
}

static void print_process(const struct trace_process *process, FILE *output)
{
    fprintf(output, "  process   %" PRIu32, process->pid);
    if (process->parent_pid)
        fprintf(output, " of %" PRIu32, process->parent_pid);
    fprintf(output, ": %" PRIu64 " samples, %zu threads, %.3f s%s%s: ", process->stored + process->merged,
            process->thread_count, seconds_of(process), end_text(process), process->is_complete ? "" : ", incomplete");
    cli_print_name(output, process->command && *process->command ? process->command : "?");
    fputc('\n', output);
}

struct note_sum {
    const char *name;
    uint64_t sum;
};

// The first names and their sums. A trace may have a million notes, each process the same ones.
static size_t sum_notes(const struct trace *trace, struct note_sum *sums)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->note_count; i++) {
        const struct trace_note *note = &trace->notes[i];
        if (note->text || strcmp(note->name, "parent-pid") == 0)
            continue;
        size_t at = 0;
        while (at < count && strcmp(sums[at].name, note->name) != 0)
            at++;
        if (at == NOTES_SHOWN)
            continue;
        if (at == count)
            sums[count++] = (struct note_sum){note->name, 0};
        sums[at].sum += note->value;
    }
    return count;
}

// A name ends in its unit where it has one.
static void print_note(const struct note_sum *note, FILE *output)
{
    char name[64];
    size_t length = strlen(note->name);
    bool is_time = length > 3 && strcmp(note->name + length - 3, "-ns") == 0;
    snprintf(name, sizeof name, "%.*s", (int)(is_time ? length - 3 : length), note->name);
    cli_print_name(output, name);
    fprintf(output, " %s", (is_time ? base_quantity_time(note->sum) : base_quantity_count(note->sum)).text);
}

// Of all processes together: what one of them noted is told with --json.
static void print_notes(const struct trace *trace, FILE *output)
{
    struct note_sum sums[NOTES_SHOWN];
    size_t count = sum_notes(trace, sums);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "  notes     ", output);
        print_note(&sums[i], output);
    }
    if (count)
        fputc('\n', output);
}

void info_processes_text(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    for (size_t i = 0; trace->process_count > 1 && i < trace->process_count && i < PROCESSES_SHOWN; i++)
        print_process(&trace->processes[i], output);
    if (trace->process_count > PROCESSES_SHOWN)
        fprintf(output, "  process   and %zu more\n", trace->process_count - PROCESSES_SHOWN);
    print_notes(trace, output);
    if (!info->parts)
        return;
    fputs("  parts     a recording was interrupted: traces of more processes are in ", output);
    cli_print_name(output, info->parts);
    fputc('\n', output);
}

static void print_json_notes(struct base_json *json, const char *key, const struct trace *trace, size_t first,
                             size_t count)
{
    base_json_open(json, key, '{');
    for (size_t i = first; i < first + count; i++)
        if (trace->notes[i].text)
            base_json_string(json, trace->notes[i].name, trace->notes[i].text);
        else
            base_json_number(json, trace->notes[i].name, trace->notes[i].value);
    base_json_close(json, '}');
}

void info_processes_json(const struct info *info, struct base_json *json)
{
    static const char *const ends[] = {"", "closed", "died", "stopped", "exec"};
    const struct trace *trace = info->trace;
    if (info->parts)
        base_json_string(json, "parts", info->parts);
    print_json_notes(json, "notes", trace, trace->first_own_note, trace->note_count - trace->first_own_note);
    base_json_open(json, "processes", '[');
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        base_json_open(json, NULL, '{');
        base_json_number(json, "pid", process->pid);
        base_json_number(json, "parent_pid", process->parent_pid);
        base_json_string(json, "command", process->command);
        base_json_string(json, "arch", info_arch_name(process->arch));
        base_json_string(json, "end", ends[process->end < sizeof ends / sizeof *ends ? process->end : 0]);
        base_json_bool(json, "complete", process->is_complete);
        base_json_number(json, "start_ns", process->start_ns);
        base_json_number(json, "end_ns", process->end_ns);
        base_json_number(json, "threads", process->thread_count);
        base_json_number(json, "hits", process->counts.hits);
        base_json_number(json, "stored", process->stored);
        base_json_number(json, "merged", process->merged);
        base_json_number(json, "present_samples", process->present_samples);
        print_json_notes(json, "notes", trace, process->first_note, process->note_count);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}
