// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/summary.h"

#include <stdio.h>
#include <time.h>

#include "formats/qut_trace_file.h"
#include "tracer/report/html.h"
#include "tracer/report/notes.h"
#include "tracer/report/quality_html.h"
#include "tracer/report/recordings.h"

static uint64_t sum(const qut_trace_u64 *values, unsigned count)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < count; i++)
        all += values[i];
    return all;
}

static uint64_t lost_of(const struct trace *trace)
{
    return sum(trace->counts.lost, QUT_TRACE_LOST_COUNT);
}

static void share(struct sink *sink, uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return;
    sink_text(sink, "<td class=\"number\">");
    // In double: a trace may claim counts whose product has no place in 64 bits.
    double percent = 100.0 * (double)part / (double)whole;
    sink_fixed(sink, (int64_t)(percent * 100 + 0.5), 2);
    sink_text(sink, " %</td>");
}

static void row(struct sink *sink, const char *id, const char *what, uint64_t count, uint64_t whole)
{
    sink_text(sink, "<tr><th scope=\"row\">");
    report_html_text(sink, what);
    sink_text(sink, "</th><td class=\"number\" data-count=\"");
    report_html_text(sink, id);
    sink_text(sink, "\">");
    report_html_count(sink, count);
    sink_text(sink, "</td>");
    share(sink, count, whole);
    sink_text(sink, "</tr>\n");
}

static void table_head(struct sink *sink, const char *caption, const char *counted)
{
    sink_text(sink, "<table class=\"counts\"><caption>");
    sink_text(sink, caption);
    sink_text(sink, "</caption>\n<thead><tr><th scope=\"col\">");
    sink_text(sink, counted);
    sink_text(sink, "</th><th scope=\"col\" class=\"number\">count</th><th scope=\"col\" class=\"number\">share</th>"
                    "</tr></thead>\n<tbody>\n");
}

static void hits_table(struct sink *sink, const struct trace *trace)
{
    uint64_t hits = trace->counts.hits;
    table_head(sink, "Every hit, and what became of it", "hits");
    row(sink, "hits", "all", hits, hits);
    row(sink, "stored", "stored as a record", trace->stored, hits);
    row(sink, "merged", "merged into the equal one before", trace->merged, hits);
    row(sink, "throttled", "throttled, as asked", trace->counts.throttled, hits);
    for (unsigned reason = 0; reason < QUT_TRACE_LOST_COUNT; reason++) {
        if (trace->counts.lost[reason] == 0)
            continue;
        char text[80] = "lost: ", id[] = "lost-0";
        id[5] = (char)('0' + reason);
        snprintf(text, sizeof text, "lost: %s", trace_lost_name(reason));
        row(sink, id, text, trace->counts.lost[reason], hits);
    }
    if (trace->under_way)
        row(sink, "under-way", "under way when the trace was taken", trace->under_way, hits);
    sink_text(sink, "</tbody></table>\n");
}

static void samples_table(struct sink *sink, const struct trace *trace)
{
    uint64_t samples = trace->stored + trace->merged;
    table_head(sink, "Samples stored or merged, and where they are", "samples");
    row(sink, "samples", "all", samples, samples);
    row(sink, "present", "in this report", trace->present_samples, samples);
    row(sink, "overwritten", "overwritten by newer ones", trace->overwritten_samples, samples);
    row(sink, "damaged", "damaged: could not be read", trace->damaged_samples, samples);
    for (unsigned reason = 0; reason < QUT_TRACE_CUT_COUNT; reason++) {
        if (trace->counts.cut[reason] == 0)
            continue;
        char text[80], id[] = "cut-0";
        id[4] = (char)('0' + reason);
        snprintf(text, sizeof text, "of all, cut short: %s", trace_cut_name(reason));
        row(sink, id, text, trace->counts.cut[reason], samples);
    }
    sink_text(sink, "</tbody></table>\n");
}

static void reasons(struct sink *sink, const struct trace *trace)
{
    const char *separator = " (";
    for (unsigned reason = 0; reason < QUT_TRACE_LOST_COUNT; reason++) {
        if (trace->counts.lost[reason] == 0)
            continue;
        sink_text(sink, separator);
        report_html_count(sink, trace->counts.lost[reason]);
        sink_text(sink, " ");
        report_html_text(sink, trace_lost_name(reason));
        separator = ", ";
    }
    sink_text(sink, ")");
}

static void part(struct sink *sink, const char **separator, uint64_t count, const char *what)
{
    if (count == 0)
        return;
    sink_text(sink, *separator);
    sink_text(sink, "<b>");
    report_html_count(sink, count);
    sink_text(sink, "</b> ");
    sink_text(sink, what);
    *separator = ", ";
}

// How many processes ended without closing the trace, where that is all that makes it incomplete; else 0.
static size_t died_of(const struct trace *trace)
{
    size_t died = 0;
    for (size_t p = 0; p < trace->process_count; p++) {
        if (trace->processes[p].is_complete)
            continue;
        if (trace->processes[p].end != QUT_TRACE_FILE_END_DIED)
            return 0;
        died++;
    }
    return died;
}

// All in one or two sentences.
static void verdict(struct sink *sink, const struct trace *trace, const struct trace_balance *balance,
                    const struct quality *quality)
{
    const char *separator = "";
    part(sink, &separator, lost_of(trace), "lost");
    if (lost_of(trace))
        reasons(sink, trace);
    part(sink, &separator, trace->overwritten_samples, "overwritten by newer ones");
    part(sink, &separator, trace->damaged_samples, "damaged");
    report_notes_verdict(sink, trace, &separator);
    size_t died = trace->is_complete ? 0 : died_of(trace);
    if (!trace->is_complete && !died)
        sink_text(sink, *separator ? "; the trace is incomplete." : "The trace is incomplete.");
    else
        sink_text(sink, *separator ? "." : "Nothing was lost.");
    if (died) {
        sink_text(sink, " ");
        report_html_count(sink, died);
        sink_text(sink, " of ");
        report_html_count(sink, trace->process_count);
        sink_text(sink, trace->process_count == 1 ? " process" : " processes");
        sink_text(sink, " ended without closing the trace: what was stored until then is here.");
    }
    report_quality_tell(sink, quality);
    sink_text(sink, " Of ");
    report_html_count(sink, trace->counts.hits);
    sink_text(sink, " hits, ");
    report_html_count(sink, trace->present_samples);
    sink_text(sink, " are in this report.");
    report_notes_ticks(sink, trace);
    if (balance->hits_missing || balance->samples_missing)
        sink_text(sink, " <b>The counts do not add up</b>: the trace was damaged where it counts.");
}

static void losses(struct sink *sink, const struct trace *trace, const struct quality *quality)
{
    struct trace_balance balance = trace_balance(trace);
    bool has_loss = lost_of(trace) || trace->overwritten_samples || trace->damaged_samples ||
                    (!trace->is_complete && !died_of(trace)) || balance.hits_missing || balance.samples_missing ||
                    report_notes_tell_loss(trace);
    sink_text(sink, "<section id=\"losses\" class=\"");
    sink_text(sink, has_loss ? "has-loss" : report_quality_is_bad(quality) ? "has-flaw" : "no-loss");
    sink_text(sink, "\" aria-label=\"Losses\">\n");
    sink_text(sink, "<details><summary><span class=\"sign\" aria-hidden=\"true\"></span><span id=\"verdict\">");
    verdict(sink, trace, &balance, quality);
    sink_text(sink, "</span></summary>\n<div class=\"tables\">\n");
    hits_table(sink, trace);
    samples_table(sink, trace);
    report_notes_tables(sink, trace);
    sink_text(sink, "</div>\n<p id=\"balance\">");
    if (balance.hits_missing == 0 && balance.samples_missing == 0) {
        sink_text(sink, "Both sums are exact: hits = stored + merged + throttled + lost + under way; "
                        "stored + merged = present + overwritten + damaged.");
    } else {
        sink_text(sink, "Unexplained: hits ");
        sink_fixed(sink, balance.hits_missing, 0);
        sink_text(sink, ", samples ");
        sink_fixed(sink, balance.samples_missing, 0);
        sink_text(sink, ".");
    }
    sink_text(sink, "</p>\n");
    report_quality_advice(sink, quality);
    if (trace->damage_count) {
        sink_text(sink, "<p>What is not whole:</p><ul id=\"damages\">\n");
        for (size_t i = 0; i < trace->damage_count; i++) {
            sink_text(sink, "<li>");
            report_html_text(sink, trace->damages[i]);
            sink_text(sink, "</li>\n");
        }
        sink_text(sink, "</ul>\n");
    }
    sink_text(sink, "</details></section>\n");
}

static void fact(struct sink *sink, const char *name)
{
    sink_text(sink, "<div><dt>");
    for (; *name; name++) // "allocated-bytes"
        sink_bytes(sink, *name == '-' ? " " : name, 1);
    sink_text(sink, "</dt><dd>");
}

static void end_fact(struct sink *sink)
{
    sink_text(sink, "</dd></div>\n");
}

static void totals(struct sink *sink, const struct trace *trace)
{
    for (unsigned total = 0; total < QUT_TRACE_TOTAL_COUNT; total++) {
        if (trace->totals[total] == 0)
            continue;
        bool is_time = total == QUT_TRACE_TOTAL_LOCK_WAIT_NS || total == QUT_TRACE_TOTAL_BLOCKED_NS;
        fact(sink, total == QUT_TRACE_TOTAL_LOCK_WAIT_NS ? "waited for locks"
                   : total == QUT_TRACE_TOTAL_BLOCKED_NS ? "blocked"
                                                         : trace_total_name(total));
        (is_time ? report_html_time : report_html_count)(sink, trace->totals[total]);
        end_fact(sink);
    }
}

static void facts(struct sink *sink, const struct trace *trace, const struct quality *quality)
{
    uint64_t length_ns = trace->end_ns - trace->start_ns;
    sink_text(sink, "<dl id=\"facts\">\n");
    fact(sink, trace->process_count > 1 ? "processes" : "process");
    sink_number(sink, trace->process_count > 1 ? trace->process_count : trace->pid);
    end_fact(sink);
    if (trace->realtime_ns) {
        char text[40] = "";
        time_t seconds = (time_t)(trace->realtime_ns / 1000000000);
        struct tm parts;
        if (gmtime_r(&seconds, &parts))
            strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
        fact(sink, "began");
        report_html_text(sink, text);
        end_fact(sink);
    }
    fact(sink, "length");
    report_html_time(sink, length_ns);
    end_fact(sink);
    fact(sink, "threads");
    report_html_count(sink, trace->thread_count);
    end_fact(sink);
    fact(sink, "samples");
    report_html_count(sink, trace->present_samples);
    sink_text(sink, " in ");
    report_html_count(sink, trace->sample_count);
    sink_text(sink, trace->sample_count == 1 ? " record" : " records");
    end_fact(sink);
    if (length_ns) {
        fact(sink, "rate");
        report_html_count(sink, (uint64_t)((double)trace->present_samples * 1e9 / (double)length_ns + 0.5));
        sink_text(sink, " /s");
        end_fact(sink);
    }
    uint64_t median_ns, longest_ns;
    if (report_notes_stops(trace, &median_ns, &longest_ns)) {
        fact(sink, "stopped for a sample");
        report_html_time(sink, median_ns);
        sink_text(sink, " (median)");
        if (longest_ns) {
            sink_text(sink, ", at most ");
            report_html_time(sink, longest_ns);
        }
        end_fact(sink);
    }
    report_quality_facts(sink, quality);
    totals(sink, trace);
    sink_text(sink, "</dl>\n");
}

int report_summary(struct sink *sink, const struct trace *trace, const struct names *names)
{
    struct quality quality;
    if (export_quality_make(&quality, trace, names) != 0)
        return -1;
    losses(sink, trace, &quality);
    sink_text(sink, "<h1 id=\"command\">");
    report_html_text(sink, trace->command && *trace->command ? trace->command : "[no command line]");
    sink_text(sink, "</h1>\n");
    facts(sink, trace, &quality);
    report_recordings(sink, trace);
    return 0;
}
