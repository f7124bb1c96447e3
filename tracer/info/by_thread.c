// SPDX-License-Identifier: Apache-2.0
// What each thread did: how much of the time it had a processor, how much it was blocked, and where it was at last.
#include <inttypes.h>
#include <stdlib.h>

#include "cli/diagnostics.h"
#include "cli/style.h"
#include "tracer/info/printer.h"

struct row {
    uint32_t thread; // index
    uint64_t samples, cpu_ns, blocked_ns;
};

static int most_work_first(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->cpu_ns != right->cpu_ns)
        return left->cpu_ns > right->cpu_ns ? -1 : 1;
    if (left->samples != right->samples)
        return left->samples > right->samples ? -1 : 1;
    if (left->blocked_ns != right->blocked_ns)
        return left->blocked_ns > right->blocked_ns ? -1 : 1;
    return left->thread < right->thread ? -1 : left->thread > right->thread;
}

static struct row row_of(const struct printer *printer, uint32_t index)
{
    const struct trace_thread *thread = &printer->trace->threads[index];
    struct row row = {.thread = index};
    for (size_t i = thread->first_sample; i < thread->first_sample + thread->sample_count; i++) {
        const uint64_t *weights = printer->selection->weights[i];
        row.samples += weights[MEASURE_SAMPLES];
        row.cpu_ns += weights[MEASURE_CPU];
        row.blocked_ns += weights[MEASURE_BLOCKED];
    }
    return row;
}

// Its last sample; NULL: there is none.
static const struct trace_sample *last_of(const struct printer *printer, uint32_t index)
{
    const struct trace_thread *thread = &printer->trace->threads[index];
    return thread->sample_count ? &printer->trace->samples[thread->first_sample + thread->sample_count - 1] : NULL;
}

static double share_of(const struct printer *printer, uint64_t ns)
{
    const struct selection *selection = printer->selection;
    uint64_t all_ns = selection->end_ns > selection->start_ns ? selection->end_ns - selection->start_ns : 0;
    return all_ns ? (double)ns / (double)all_ns : 0;
}

static void print_row(const struct printer *printer, const struct row *row)
{
    char text[INFO_THREAD_BYTES], stack[INFO_STACK_BYTES] = "";
    const struct trace_sample *last = last_of(printer, row->thread);
    const char *name = info_thread_text(printer->trace, row->thread, text);
    const char *kind = last ? trace_kind_name(printer->trace, last->kind) : "";
    double cpu = share_of(printer, row->cpu_ns), blocked = share_of(printer, row->blocked_ns);
    if (last)
        info_stack_text(printer, last->node, stack);
    if (printer->json) {
        base_json_open(printer->json, NULL, '{');
        base_json_string(printer->json, "thread", name);
        base_json_number(printer->json, "tid", printer->trace->threads[row->thread].tid);
        base_json_number(printer->json, "samples", row->samples);
        base_json_number(printer->json, "cpu_ns", row->cpu_ns);
        base_json_number(printer->json, "blocked_ns", row->blocked_ns);
        base_json_real(printer->json, "cpu_share", cpu, 6);
        base_json_real(printer->json, "blocked_share", blocked, 6);
        base_json_string(printer->json, "last_kind", kind);
        base_json_bool(printer->json, "last_is_open", last && last->is_open);
        base_json_string(printer->json, "last", stack);
        base_json_close(printer->json, '}');
        return;
    }
    fprintf(printer->output, "  %6.2f %% %6.2f %% %9" PRIu64 "  ", 100 * cpu, 100 * blocked, row->samples);
    cli_print_name(printer->output, name);
    fprintf(printer->output, ": %s%s", last && last->is_open ? "in a wait: " : "", last ? "" : "no samples");
    info_print_end(printer, stack);
}

int info_print_by_thread(const struct printer *printer)
{
    size_t count = printer->trace->thread_count;
    struct row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = row_of(printer, i);
    qsort(rows, count, sizeof *rows, most_work_first);
    if (printer->json)
        base_json_open(printer->json, "by_thread", '[');
    else
        fprintf(printer->output,
                "\n  threads: of the time, on a processor and blocked\n"
                "  %s     cpu  blocked   samples  thread: where it was at last, innermost first%s\n",
                cli_style_head(printer->output), cli_style_end(printer->output));
    for (size_t i = 0; i < count && i < printer->rows; i++)
        print_row(printer, &rows[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    else if (count > printer->rows)
        fprintf(printer->output, "  and %zu more\n", count - printer->rows);
    free(rows);
    return 0;
}
