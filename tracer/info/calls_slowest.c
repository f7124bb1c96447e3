// SPDX-License-Identifier: Apache-2.0
// Where the time was in a function's slowest calls: in it and in traced functions that it called, to the nanosecond;
// and in the samples of its thread meanwhile, where there are some.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/style.h"
#include "tracer/analysis/call_part.h"
#include "tracer/call_times/slowest.h"
#include "tracer/info/printer.h"
#include "tracer/names/short_name.h"

enum { NAME_COLUMNS = 100 };

struct met { // by the name of the innermost function
    uint32_t id;
    uint64_t samples, cpu_ns, blocked_ns;
};

static void print_name(const struct printer *printer, const char *name)
{
    char text[4 * NAME_COLUMNS + 8];
    info_print_end(printer, names_shorten(name, NAME_COLUMNS, text, sizeof text));
}

// "f", as "f(int)" too.
static bool is_meant(const struct name *name, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strcmp(name->function, wanted) == 0 || (name->mangled && strcmp(name->mangled, wanted) == 0) ||
           (strncmp(name->function, wanted, length) == 0 && name->function[length] == '(');
}

static bool *find_functions(const struct printer *printer, const struct call_events *calls, const char *wanted,
                            size_t *count)
{
    bool *functions = calloc(calls->functions.count + 1, sizeof *functions);
    for (uint32_t i = 0; functions && i < calls->functions.count; i++) {
        functions[i] = is_meant(info_call_name(printer, calls, i), wanted);
        *count += functions[i];
    }
    return functions;
}

// ---- samples meanwhile

static int most_first(const void *one, const void *other)
{
    const struct met *a = one, *b = other;
    const uint64_t left = a->cpu_ns + a->blocked_ns, right = b->cpu_ns + b->blocked_ns;
    if (left != right)
        return left > right ? -1 : 1;
    if (a->samples != b->samples)
        return a->samples > b->samples ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static uint32_t thread_of_uid(const struct trace *trace, uint32_t uid)
{
    for (size_t i = 0; i < trace->thread_count; i++)
        if (trace->threads[i].uid == uid)
            return (uint32_t)i;
    return TRACE_NONE;
}

static void add_samples(const struct printer *printer, const struct call_times_slow *slow, uint32_t thread_index,
                        struct met *met)
{
    const struct trace *trace = printer->trace;
    const struct trace_thread *thread = &trace->threads[thread_index];
    size_t low = thread->first_sample, high = low + thread->sample_count, end = high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->samples[middle].first_ns < slow->begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < end && trace->samples[i].first_ns <= slow->end_ns; i++) {
        const uint32_t node = trace->samples[i].node;
        if (!names_count(printer->names, node))
            continue;
        struct met *place = &met[names_at(printer->names, node, 0)->id];
        const uint64_t *weights = printer->selection->weights[i];
        place->samples += trace->samples[i].count;
        place->cpu_ns += weights[MEASURE_CPU];
        place->blocked_ns += weights[MEASURE_BLOCKED];
    }
}

static void print_met(const struct printer *printer, const struct met *met)
{
    const struct name *name = names_by_id(printer->names, met->id);
    if (!printer->json) {
        fprintf(printer->output, "  %10" PRIu64 " %10s %10s  ", met->samples, base_quantity_time(met->cpu_ns).text,
                base_quantity_time(met->blocked_ns).text);
        print_name(printer, name->function);
        return;
    }
    base_json_open(printer->json, NULL, '{');
    base_json_string(printer->json, "function", name->function);
    base_json_number(printer->json, "samples", met->samples);
    base_json_number(printer->json, "cpu_ns", met->cpu_ns);
    base_json_number(printer->json, "blocked_ns", met->blocked_ns);
    base_json_close(printer->json, '}');
}

static int print_samples(const struct printer *printer, const struct call_events *calls,
                         const struct call_times_slowest *slowest)
{
    const size_t id_count = names_id_count(printer->names);
    struct met *met = calloc(id_count + 1, sizeof *met);
    uint32_t *thread_of = malloc((calls->threads.count + 1) * sizeof *thread_of);
    const struct trace *whole = printer->selection->whole;
    if (!met || !thread_of) {
        free(met);
        free(thread_of);
        return -1;
    }
    for (size_t i = 0; i < calls->threads.count; i++) {
        const uint32_t thread = calls->threads.items[i].thread;
        thread_of[i] =
            thread == CALL_EVENTS_NONE ? TRACE_NONE : thread_of_uid(printer->trace, whole->threads[thread].uid);
    }
    for (size_t i = 0; i < slowest->calls.count; i++)
        if (thread_of[slowest->calls.items[i].thread] != TRACE_NONE)
            add_samples(printer, &slowest->calls.items[i], thread_of[slowest->calls.items[i].thread], met);
    size_t count = 0;
    for (uint32_t id = 0; id < id_count; id++)
        if (met[id].samples) {
            met[count] = met[id];
            met[count++].id = id;
        }
    qsort(met, count, sizeof *met, most_first);
    if (printer->json)
        base_json_open(printer->json, "samples", '[');
    else if (count)
        fprintf(printer->output, "  %s%10s %10s %10s  samples of these threads meanwhile, by function%s\n",
                cli_style_head(printer->output), "samples", "cpu", "blocked", cli_style_end(printer->output));
    for (size_t i = 0; i < count && i < printer->rows; i++)
        print_met(printer, &met[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    free(met);
    free(thread_of);
    return 0;
}

// ---- traced functions

static void print_within(const struct printer *printer, const struct call_events *calls,
                         const struct call_times_slowest *slowest, const struct call_times_within *within)
{
    const struct name *name = info_call_name(printer, calls, within->function);
    const double share = slowest->total_ns ? (double)within->self_ns / (double)slowest->total_ns : 0;
    if (!printer->json) {
        fprintf(printer->output, "  %8.2f %% %10s %13s  ", 100 * share, base_quantity_time(within->self_ns).text,
                base_quantity_count(within->calls).text);
        print_name(printer, name->function);
        return;
    }
    base_json_open(printer->json, NULL, '{');
    base_json_string(printer->json, "function", name->function);
    base_json_number(printer->json, "calls", within->calls);
    base_json_number(printer->json, "self_ns", within->self_ns);
    base_json_close(printer->json, '}');
}

static int print_process(const struct printer *printer, const struct call_events *calls,
                         const struct call_times_slowest *slowest, const char *function)
{
    struct base_json *json = printer->json;
    if (json) {
        base_json_open(json, NULL, '{');
        base_json_number(json, "pid", calls->told.pid);
        base_json_string(json, "function", function);
        base_json_number(json, "of", slowest->of);
        base_json_number(json, "calls", slowest->calls.count);
        base_json_number(json, "least_ns", slowest->least_ns);
        base_json_number(json, "total_ns", slowest->total_ns);
        base_json_open(json, "within", '[');
    } else {
        fprintf(printer->output, "\n  the slowest %s of %s calls of ", base_quantity_count(slowest->calls.count).text,
                base_quantity_count(slowest->of).text);
        cli_print_name(printer->output, function);
        fprintf(printer->output, ": %s and more each, %s in all\n  %s%10s %10s %13s  self, by traced function%s\n",
                base_quantity_time(slowest->least_ns).text, base_quantity_time(slowest->total_ns).text,
                cli_style_head(printer->output), "share", "time", "calls", cli_style_end(printer->output));
    }
    for (size_t i = 0; i < slowest->within.count && i < printer->rows; i++)
        print_within(printer, calls, slowest, &slowest->within.items[i]);
    if (json)
        base_json_close(json, ']');
    const int status = print_samples(printer, calls, slowest);
    if (json)
        base_json_close(json, '}');
    return status;
}

static int show(const struct printer *printer, const struct call_events *calls, const bool *functions,
                const char *function, double share)
{
    struct analysis_call_part part;
    struct call_times_slowest slowest;
    struct base_error error = {0};
    if (!analysis_call_part_make(&part, printer->selection, calls))
        return -1;
    int status = call_times_slowest_find(&slowest, calls, &part.part, functions, share, &error);
    analysis_call_part_free(&part);
    if (status != 0)
        return -1;
    status = print_process(printer, calls, &slowest, function);
    call_times_slowest_free(&slowest);
    return status;
}

int info_print_slowest(const struct printer *printer, const char *function, double share)
{
    const struct trace *trace = printer->trace;
    size_t met = 0;
    int status = 0;
    if (printer->json)
        base_json_open(printer->json, "slowest", '[');
    for (size_t i = 0; i < trace->calls_count && status == 0; i++) {
        size_t count = 0;
        bool *functions = find_functions(printer, trace->calls[i], function, &count);
        if (!functions)
            status = -1;
        else if (count)
            status = show(printer, trace->calls[i], functions, function, share);
        met += count;
        free(functions);
    }
    if (printer->json)
        base_json_close(printer->json, ']');
    else if (!met && status == 0) {
        fputs("\n  slowest   no function was traced by the name ", printer->output);
        info_print_end(printer, function);
    }
    return status;
}
