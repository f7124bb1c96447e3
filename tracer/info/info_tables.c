// SPDX-License-Identifier: Apache-2.0
#include "tracer/info/info_tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/style.h"
#include "cli/terminal.h"
#include "tracer/export/functions.h"
#include "tracer/export/weight_words.h"
#include "tracer/info/printer.h"
#include "tracer/names/data_names.h"
#include "tracer/names/short_name.h"

enum { ROWS_DEFAULT = 20, NAME_COLUMNS_MAX = 500 };

bool info_tables_wanted(const struct info_wanted *wanted)
{
    return wanted->functions || wanted->by_thread || wanted->blocked || wanted->locks || wanted->calls ||
           wanted->slowest;
}

// ---- where it went

static enum measure measure_of(const struct info_wanted *wanted, const struct trace *trace)
{
    if (wanted->weight >= 0)
        return (enum measure)wanted->weight;
    return trace->has_cpu_time ? MEASURE_CPU : MEASURE_SAMPLES;
}

// Of a row on a terminal. 0: there is no bound.
static unsigned name_columns(const struct printer *printer)
{
    enum { BEFORE = 38, LEAST = 20 };
    unsigned columns = printer->columns ? printer->columns : cli_terminal_columns(printer->output);
    if (!columns || columns > BEFORE + NAME_COLUMNS_MAX)
        return columns ? NAME_COLUMNS_MAX : 0;
    return columns > BEFORE + LEAST ? columns - BEFORE : LEAST;
}

static void print_function(const struct printer *printer, const struct function_costs *costs,
                           const struct function_cost *cost)
{
    const struct name *name = names_by_id(printer->names, cost->id);
    const struct share_basis *basis = &costs->basis;
    double self = basis->sum ? (double)cost->self / (double)basis->sum : 0;
    double total = basis->sum ? (double)cost->total / (double)basis->sum : 0;
    double self_error = analysis_share_error(basis, cost->self, cost->self_told),
           total_error = analysis_share_error(basis, cost->total, cost->total_told);
    if (printer->json) {
        base_json_open(printer->json, NULL, '{');
        base_json_string(printer->json, "function", name->function);
        base_json_string(printer->json, "module", name->module);
        base_json_number(printer->json, "self", cost->self);
        base_json_number(printer->json, "total", cost->total);
        base_json_real(printer->json, "self_share", self, 6);
        base_json_real(printer->json, "self_error", self_error, 6);
        base_json_real(printer->json, "total_share", total, 6);
        base_json_real(printer->json, "total_error", total_error, 6);
        base_json_close(printer->json, '}');
        return;
    }
    char text[4 * NAME_COLUMNS_MAX + 8];
    unsigned columns = name_columns(printer);
    fprintf(printer->output, "  %6.2f %% +-%5.2f  %6.2f %% +-%5.2f  ", 100 * self, 100 * self_error, 100 * total,
            100 * total_error);
    info_print_end(printer, columns ? names_shorten(name->function, columns, text, sizeof text) : name->function);
}

static int print_top(const struct printer *printer, enum measure measure)
{
    struct function_costs costs;
    if (export_functions_make(&costs, printer->selection, printer->names, measure, printer->show_agent) != 0)
        return -1;
    if (printer->json) {
        base_json_string(printer->json, "top_weight", export_weights_name(measure));
        base_json_number(printer->json, "top_sum", costs.basis.sum);
        base_json_number(printer->json, "top_samples", costs.samples);
        base_json_number(printer->json, "top_own", costs.own);
        base_json_real(printer->json, "top_own_share", costs.own_share, 6);
        base_json_real(printer->json, "top_own_error", costs.own_error, 6);
        base_json_open(printer->json, "top", '[');
    } else {
        fprintf(printer->output,
                "\n  functions by %s: %s in %s samples; +- is the sampling error, at 95 %%\n"
                "  %sself              total             function%s\n",
                export_weights_name(measure), export_weights_amount(measure, costs.basis.sum).text,
                base_quantity_count(costs.samples).text, cli_style_head(printer->output),
                cli_style_end(printer->output));
    }
    for (size_t i = 0; i < costs.count && i < printer->rows; i++)
        print_function(printer, &costs, &costs.items[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    else if (costs.own)
        fprintf(printer->output, "  qut itself took %s%.2f %% +-%5.2f in these threads%s\n",
                printer->show_agent ? "" : "another ", 100 * costs.own_share, 100 * costs.own_error,
                printer->show_agent ? "" : ", which is in no share (--show-agent)");
    export_functions_free(&costs);
    return 0;
}

// ---- what threads waited for

static void print_blocked_row(const struct printer *printer, const struct blocked *blocked)
{
    char thread[INFO_THREAD_BYTES], stack[INFO_STACK_BYTES];
    const char *kind = trace_kind_name(printer->trace, blocked->kind);
    info_thread_text(printer->trace, blocked->thread, thread);
    info_stack_text(printer, blocked->node, stack);
    if (printer->json) {
        base_json_open(printer->json, NULL, '{');
        base_json_string(printer->json, "thread", thread);
        base_json_number(printer->json, "tid", printer->trace->threads[blocked->thread].tid);
        base_json_string(printer->json, "kind", kind);
        base_json_number(printer->json, "count", blocked->count);
        base_json_number(printer->json, "open", blocked->open);
        base_json_number(printer->json, "total_ns", blocked->total_ns);
        base_json_number(printer->json, "longest_ns", blocked->longest_ns);
        base_json_string(printer->json, "stack", stack);
        base_json_close(printer->json, '}');
        return;
    }
    fprintf(printer->output, "  %12.3f %8" PRIu64 "%c %12.3f  %-8s ", (double)blocked->total_ns / 1e6, blocked->count,
            blocked->open ? '+' : ' ', (double)blocked->longest_ns / 1e6, kind);
    cli_print_name(printer->output, thread);
    fputs(": ", printer->output);
    info_print_end(printer, stack);
}

static int print_blocked(const struct printer *printer, const struct intervals *intervals)
{
    struct blocked_list list;
    if (analysis_blocked_make(&list, printer->trace, intervals) != 0)
        return -1;
    if (printer->json)
        base_json_open(printer->json, "blocked", '[');
    else
        fprintf(printer->output,
                "\n  blocked (+: one of them had not ended)\n  %s    total ms    times    longest ms  kind     thread: "
                "stack, innermost first%s\n",
                cli_style_head(printer->output), cli_style_end(printer->output));
    for (size_t i = 0; i < list.count && i < printer->rows; i++)
        print_blocked_row(printer, &list.items[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    analysis_blocked_free(&list);
    return 0;
}

// ---- waiters and holders

static void print_lock_row(const struct printer *printer, struct names_data *data, const struct lock_wait *wait)
{
    char lock[NAMES_DATA_TEXT_BYTES], waiter[INFO_THREAD_BYTES], owner[INFO_THREAD_BYTES], waker[INFO_THREAD_BYTES],
        stack[INFO_STACK_BYTES], release[INFO_STACK_BYTES];
    const struct trace *trace = printer->trace;
    const char *by = info_thread_text(trace, wait->waker, waker), *held = info_thread_text(trace, wait->owner, owner);
    names_data_at(data, wait->process, wait->lock, lock);
    info_thread_text(trace, wait->waiter, waiter);
    info_stack_text(printer, wait->node, stack);
    info_stack_text(printer, wait->release_node, release);
    if (printer->json) {
        base_json_open(printer->json, NULL, '{');
        base_json_number(printer->json, "lock", wait->lock);
        base_json_string(printer->json, "lock_name", lock);
        base_json_string(printer->json, "waiter", waiter);
        base_json_string(printer->json, "owner", wait->owner == TRACE_NONE ? "" : held);
        base_json_string(printer->json, "waker", wait->waker == TRACE_NONE ? "" : by);
        base_json_number(printer->json, "count", wait->count);
        base_json_number(printer->json, "total_ns", wait->total_ns);
        base_json_number(printer->json, "longest_ns", wait->longest_ns);
        base_json_string(printer->json, "stack", stack);
        base_json_string(printer->json, "release_stack", release);
        base_json_close(printer->json, '}');
        return;
    }
    if (!*lock)
        snprintf(lock, sizeof lock, "0x%" PRIx64, wait->lock);
    fprintf(printer->output, "  %12.3f %8" PRIu64 "  %12.3f  ", (double)wait->total_ns / 1e6, wait->count,
            (double)wait->longest_ns / 1e6);
    cli_print_name(printer->output, lock);
    fputs("  ", printer->output);
    cli_print_name(printer->output, waiter);
    fputs(" waited: ", printer->output);
    info_print_end(printer, stack);
    fprintf(printer->output, "  %*s held by ", 40, "");
    cli_print_name(printer->output, held);
    fputs(", let go by ", printer->output);
    cli_print_name(printer->output, by);
    fputs(*release ? ": " : "", printer->output);
    info_print_end(printer, release);
}

static int print_locks(const struct printer *printer, const struct intervals *intervals)
{
    struct lock_wait_list list;
    struct names_data *data = names_data_open(printer->trace, printer->names);
    if (!data || analysis_lock_waits_make(&list, printer->trace, intervals) != 0) {
        names_data_close(data);
        return -1;
    }
    if (printer->json)
        base_json_open(printer->json, "locks", '[');
    else
        fprintf(printer->output, "\n  waits for locks\n  %s    total ms    times    longest ms  lock%s\n",
                cli_style_head(printer->output), cli_style_end(printer->output));
    for (size_t i = 0; i < list.count && i < printer->rows; i++)
        print_lock_row(printer, data, &list.items[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    analysis_lock_waits_free(&list);
    int status = names_data_no_memory(data) ? -1 : 0;
    names_data_close(data);
    return status;
}

static int print_all(const struct info_wanted *wanted, const struct printer *printer)
{
    struct intervals intervals = {0};
    const bool has_calls_only = printer->trace->calls_count && !printer->trace->counts.hits && !printer->json;
    int status = wanted->functions && !has_calls_only ? print_top(printer, measure_of(wanted, printer->trace)) : 0;
    if (status == 0 && wanted->by_thread)
        status = info_print_by_thread(printer);
    if (status == 0 && (wanted->blocked || wanted->locks))
        status = analysis_intervals_make(&intervals, printer->trace);
    if (status == 0 && wanted->blocked)
        status = print_blocked(printer, &intervals);
    if (status == 0 && wanted->locks)
        status = print_locks(printer, &intervals);
    if (status == 0 && wanted->calls)
        status = info_print_calls(printer);
    if (status == 0 && wanted->slowest)
        status = info_print_slowest(printer, wanted->slowest, wanted->slowest_share);
    analysis_intervals_free(&intervals);
    return status;
}

static struct printer printer_of(const struct info_wanted *wanted, const struct selection *selection,
                                 const struct names *names)
{
    return (struct printer){.selection = selection,
                            .trace = &selection->trace,
                            .names = names,
                            .rows = wanted->rows ? (size_t)wanted->rows : ROWS_DEFAULT,
                            .show_agent = wanted->show_agent,
                            .columns = wanted->columns};
}

int info_tables_select(struct selection *to, const struct trace *trace, const struct selection_wanted *part,
                       struct base_error *error)
{
    struct selection_wanted wanted = *part;
    wanted.kind = SELECTION_ALL;
    wanted.show_agent = true;
    return analysis_selection_make(to, trace, &wanted, error);
}

int info_tables_json(const struct info_wanted *wanted, const struct selection *selection, const struct names *names,
                     struct base_json *json)
{
    struct printer printer = printer_of(wanted, selection, names);
    printer.json = json;
    return print_all(wanted, &printer);
}

int info_tables_text(const struct info_wanted *wanted, const struct selection *selection, const struct names *names,
                     FILE *output)
{
    struct printer printer = printer_of(wanted, selection, names);
    printer.output = output;
    return print_all(wanted, &printer);
}
