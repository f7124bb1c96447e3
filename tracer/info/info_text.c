// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/style.h"
#include "tracer/call_events/events.h"
#include "tracer/export/losses.h"
#include "tracer/info/info.h"
#include "tracer/info/info_tables.h"

enum { THREADS_SHOWN = 20, MODULES_SHOWN = 20 };

static void print_loss(void *context, const char *text)
{
    fprintf(context, "  %sLOSSES    ", cli_style_bad(context));
    cli_print_name(context, text);
    fprintf(context, "%s\n", cli_style_end(context));
}

static void print_losses(const struct info *info, FILE *output)
{
    char summary[128];
    // What is missing at the end has its counts there.
    if (!export_losses_summary(info->trace, summary, sizeof summary) && info->trace->is_complete)
        fputs("  losses    no sample was lost\n", output);
    export_losses_say(info->trace, print_loss, output);
}

static void print_advice(void *context, const char *text)
{
    fputs("  advice    ", context);
    cli_print_name(context, text);
    fputc('\n', context);
}

static void print_quality(const struct quality *quality, FILE *output)
{
    char line[512];
    export_quality_line(quality, line, sizeof line);
    fprintf(output, "  quality   %s\n", line);
    export_quality_advise(quality, print_advice, output);
}

static void print_time(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    time_t began = (time_t)(trace->realtime_ns / 1000000000u);
    struct tm parts;
    char text[64] = "";
    if (trace->realtime_ns && gmtime_r(&began, &parts))
        strftime(text, sizeof text, " from %Y-%m-%d %H:%M:%S UTC on", &parts);
    fprintf(output, "  time      %.3f s%s\n", info->seconds, text);
}

// Of exact calls alone, which is a trace without samples.
static bool has_calls_only(const struct trace *trace)
{
    return trace->calls_count && !trace->counts.hits;
}

static uint64_t print_calls(const struct trace *trace, FILE *output)
{
    uint64_t enters = 0, exits = 0, lost = 0;
    size_t functions = 0;
    for (size_t i = 0; i < trace->calls_count; i++) {
        enters += trace->calls[i]->enters;
        exits += trace->calls[i]->exits;
        lost += trace->calls[i]->lost_enters + trace->calls[i]->lost_exits;
        functions += trace->calls[i]->functions.count;
    }
    if (!trace->calls_count)
        return 0;
    if (lost)
        fprintf(output, "  %sLOSSES    %" PRIu64 " events of exact calls had no room%s\n", cli_style_bad(output), lost,
                cli_style_end(output));
    fprintf(output, "  calls     %" PRIu64 " entries and %" PRIu64 " exits of %zu traced functions (--calls)\n", enters,
            exits, functions);
    return enters + exits;
}

static void print_balance(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    const uint64_t events = print_calls(trace, output);
    if (has_calls_only(trace)) {
        fprintf(output, "  sizes     %s of file, %.2f bytes an event\n", base_quantity_bytes(trace->file_bytes).text,
                events ? (double)trace->file_bytes / (double)events : 0);
        return;
    }
    struct trace_balance balance = trace_balance(trace);
    fprintf(output,
            "  hits      %" PRIu64 " = %" PRIu64 " stored + %" PRIu64 " merged + %" PRIu64 " throttled + %" PRIu64
            " lost",
            trace->counts.hits, trace->stored, trace->merged, trace->counts.throttled, info->lost);
    if (trace->under_way)
        fprintf(output, " + %" PRIu64 " under way", trace->under_way);
    fputs(balance.hits_missing ? ", WHICH IS WRONG\n" : "\n", output);
    fprintf(output,
            "  samples   %" PRIu64 " here in %zu records, %" PRIu64 " overwritten, %" PRIu64 " not readable%s\n",
            trace->present_samples, trace->sample_count, trace->overwritten_samples, trace->damaged_samples,
            balance.samples_missing ? ", WHICH IS WRONG" : "");
    if (info->seconds > 0)
        fprintf(output, "  rate      %.1f hits a second, %.1f samples\n", (double)trace->counts.hits / info->seconds,
                (double)(trace->stored + trace->merged) / info->seconds);
}

static void print_kinds(const struct info *info, FILE *output)
{
    const char *separator = "  kinds     ";
    for (unsigned i = 0; i < INFO_KINDS; i++)
        if (info->kinds[i]) {
            fprintf(output, "%s%" PRIu64 " ", separator, info->kinds[i]);
            cli_print_name(output, trace_kind_name(info->trace, i));
            separator = ", ";
        }
    if (info->unknown_kinds)
        fprintf(output, "%s%" PRIu64 " unknown", separator, info->unknown_kinds);
    if (info->trace->present_samples)
        fputc('\n', output);
    separator = "  marks     ";
    for (unsigned i = 0; i < sizeof info->marks / sizeof *info->marks; i++)
        if (info->marks[i]) {
            fprintf(output, "%s%" PRIu64 " %s", separator, info->marks[i], info_mark_kind_name(i));
            separator = ", ";
        }
    if (separator[0] == ',')
        fputc('\n', output);
    separator = "  totals    ";
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        if (info->trace->totals[i]) {
            fprintf(output, "%s%s %s", separator, base_quantity_count(info->trace->totals[i]).text,
                    trace_total_name(i));
            separator = ", ";
        }
    if (separator[0] == ',')
        fputc('\n', output);
}

static void print_sizes(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    fprintf(output, "  sizes     %s %s; %.2f bytes a sample in memory", base_quantity_bytes(trace->file_bytes).text,
            info->is_segment ? "of segment" : "of file", info->record_bytes_per_sample);
    if (!info->is_segment)
        fprintf(output, ", %.2f on disk with all that goes with it", info->file_bytes_per_sample);
    const char *separator = "\n  frames    ";
    for (unsigned i = 0; i < QUT_TRACE_CLASS_COUNT; i++)
        if (info->frames[i]) {
            fprintf(output, "%s%" PRIu64 " %s", separator, info->frames[i], info_class_name(i));
            separator = ", ";
        }
    fprintf(output, "%s8 bytes each\n", separator);
}

static const struct trace *compared; // qsort has no context in C

static int compare_threads(const void *a, const void *b)
{
    uint64_t left = compared->threads[*(const size_t *)a].stored + compared->threads[*(const size_t *)a].merged;
    uint64_t right = compared->threads[*(const size_t *)b].stored + compared->threads[*(const size_t *)b].merged;
    if (left != right)
        return left > right ? -1 : 1;
    return *(const size_t *)a < *(const size_t *)b ? -1 : 1;
}

static void print_thread(const struct trace_thread *thread, FILE *output)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        lost += thread->counts.lost[i];
    fprintf(output, "  thread    %" PRIu32 " \"", thread->tid);
    cli_print_name(output, thread->name);
    fprintf(output, "\": %" PRIu64 " samples", thread->stored + thread->merged);
    if (thread->counts.throttled)
        fprintf(output, ", %" PRIu64 " throttled", thread->counts.throttled);
    if (lost)
        fprintf(output, ", %" PRIu64 " lost", lost);
    if (thread->mark_count)
        fprintf(output, ", %zu marks", thread->mark_count);
    if (thread->gap_count)
        fprintf(output, ", %zu gaps", thread->gap_count);
    fputs(thread->end_ns == UINT64_MAX ? "\n" : ", ended\n", output);
}

static int print_threads(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    size_t *order = calloc(trace->thread_count + 1, sizeof *order);
    if (!order)
        return -1;
    for (size_t i = 0; i < trace->thread_count; i++)
        order[i] = i;
    compared = trace;
    qsort(order, trace->thread_count, sizeof *order, compare_threads);
    for (size_t i = 0; i < trace->thread_count && i < THREADS_SHOWN; i++)
        print_thread(&trace->threads[order[i]], output);
    if (trace->thread_count > THREADS_SHOWN)
        fprintf(output, "  thread    and %zu more\n", trace->thread_count - THREADS_SHOWN);
    free(order);
    return 0;
}

static void print_modules(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    size_t shown = 0, hidden = 0;
    for (size_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        if (module->flags & QUT_TRACE_MODULE_JIT || shown == MODULES_SHOWN) {
            hidden++;
            continue;
        }
        fputs("  module    ", output);
        cli_print_name(output, *module->path ? module->path : "?");
        for (uint32_t byte = 0; byte < module->build_id_bytes; byte++)
            fprintf(output, "%s%02x", byte ? "" : " ", module->build_id[byte]);
        fputs(module->unload_ns == UINT64_MAX ? "\n" : ", unloaded\n", output);
        shown++;
    }
    if (hidden)
        fprintf(output, "  module    and %zu more\n", hidden);
}

int info_print_text(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    static const char *const modes[] = {"keeps the newest", "keeps all"};
    fputs(cli_style_head(output), output);
    cli_print_name(output, trace->path);
    fprintf(output, ":%s\n", cli_style_end(output));
    print_losses(info, output);
    if (info->quality)
        print_quality(info->quality, output);
    fprintf(output, "  from      process %" PRIu32 ", %s, %s", trace->pid, info_arch_name(trace->arch),
            modes[trace->mode == QUT_TRACE_STREAM]);
    if (*trace->command) {
        fputs(": ", output);
        cli_print_name(output, trace->command);
    }
    fputc('\n', output);
    print_time(info, output);
    print_balance(info, output);
    if (!has_calls_only(trace)) {
        print_kinds(info, output);
        print_sizes(info, output);
    }
    info_processes_text(info, output);
    if (print_threads(info, output) != 0)
        return -1;
    print_modules(info, output);
    return info->names ? info_tables_text(info->wanted, info->selection, info->names, output) : 0;
}
