// SPDX-License-Identifier: Apache-2.0
// Exact calls: by function, and as a tree of who called whom.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/style.h"
#include "tracer/analysis/call_part.h"
#include "tracer/call_times/sums.h"
#include "tracer/info/printer.h"
#include "tracer/names/short_name.h"

enum { NAME_COLUMNS = 100, JSON_NODES_MAX = 10000 };

struct shown {
    const struct printer *printer;
    const struct call_events *calls;
    const struct call_times_sums *sums;
};

const struct name *info_call_name(const struct printer *printer, const struct call_events *calls, uint32_t function)
{
    const uint32_t node = calls->functions.items[function].node;
    return names_at(printer->names, node, names_count(printer->names, node) - 1); // not what is inlined at its entry
}

// ---- whether it adds up

static bool is_balanced(const struct shown *shown)
{
    const struct call_times_account *account = &shown->sums->account;
    uint64_t ended = 0;
    for (unsigned i = 0; i < CALL_TIMES_HOW_COUNT; i++)
        ended += account->how[i];
    return ended == account->enters && account->how[CALL_TIMES_RETURNED] + account->exits_alone == account->exits;
}

static void print_account_json(const struct shown *shown)
{
    static const char *const keys[] = {"returned", "tail_calls", "unwound", "open", "lost"};
    struct base_json *json = shown->printer->json;
    const struct call_times_account *account = &shown->sums->account;
    const struct call_events *calls = shown->calls;
    base_json_number(json, "pid", calls->told.pid);
    base_json_number(json, "begin_ns", calls->told.begin_ns);
    base_json_number(json, "end_ns", calls->told.end_ns);
    base_json_bool(json, "balanced", is_balanced(shown));
    base_json_number(json, "enters", account->enters);
    base_json_number(json, "exits", account->exits);
    for (unsigned i = 0; i < CALL_TIMES_HOW_COUNT; i++)
        base_json_number(json, keys[i], account->how[i]);
    base_json_number(json, "exits_alone", account->exits_alone);
    base_json_number(json, "lost_enters", calls->lost_enters);
    base_json_number(json, "lost_exits", calls->lost_exits);
    base_json_number(json, "counted", calls->counted);
    base_json_number(json, "misaligned", calls->told.misaligned);
    base_json_number(json, "traced_functions", calls->functions.count);
    base_json_number(json, "threads", calls->threads.count);
}

static void print_account_text(const struct shown *shown)
{
    FILE *output = shown->printer->output;
    const struct call_times_account *account = &shown->sums->account;
    const struct call_events *calls = shown->calls;
    fprintf(output, "\n  calls of process %" PRIu32 ": %zu functions traced, %zu threads\n", calls->told.pid,
            calls->functions.count, calls->threads.count);
    fprintf(output,
            "  entered   %" PRIu64 " = %" PRIu64 " returned + %" PRIu64 " tail calls + %" PRIu64 " unwound + %" PRIu64
            " open + %" PRIu64 " whose end was lost%s\n",
            account->enters, account->how[CALL_TIMES_RETURNED], account->how[CALL_TIMES_TAIL],
            account->how[CALL_TIMES_UNWOUND], account->how[CALL_TIMES_OPEN], account->how[CALL_TIMES_LOST],
            is_balanced(shown) ? "" : ", WHICH IS WRONG");
    if (account->exits_alone)
        fprintf(output, "  left      %" PRIu64 " whose entry is not here\n", account->exits_alone);
    if (calls->counted)
        fprintf(output, "  counted   %" PRIu64 " more, without events\n", calls->counted);
    if (calls->told.misaligned)
        fprintf(output, "  misaligned %" PRIu64 " calls on stacks as they should not be: not traced\n",
                calls->told.misaligned);
    if (calls->lost_enters || calls->lost_exits)
        fprintf(output, "  %slost      %" PRIu64 " entries and %" PRIu64 " exits, which had no room%s\n",
                cli_style_bad(output), calls->lost_enters, calls->lost_exits, cli_style_end(output));
}

// ---- by function

static int most_total_first(const void *one, const void *other, void *context)
{
    const struct call_times_function *functions = context;
    const uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    const struct call_times_function *a = &functions[left], *b = &functions[right];
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->calls != b->calls)
        return a->calls > b->calls ? -1 : 1;
    return left < right ? -1 : 1;
}

static bool is_thinned(const struct call_events_function *function)
{
    return call_events_one_of(function) != 0;
}

static void print_function_json(const struct shown *shown, uint32_t index)
{
    struct base_json *json = shown->printer->json;
    const struct call_events_function *told = &shown->calls->functions.items[index];
    const struct call_times_function *function = &shown->sums->functions[index];
    const struct name *name = info_call_name(shown->printer, shown->calls, index);
    base_json_open(json, NULL, '{');
    base_json_string(json, "function", name->function);
    base_json_string(json, "module", name->module);
    base_json_number(json, "id", told->id);
    base_json_number(json, "vaddr", told->vaddr);
    base_json_number(json, "calls", function->calls);
    base_json_number(json, "returned", function->how[CALL_TIMES_RETURNED]);
    base_json_number(json, "tail_calls", function->how[CALL_TIMES_TAIL]);
    base_json_number(json, "unwound", function->how[CALL_TIMES_UNWOUND]);
    base_json_number(json, "open", function->how[CALL_TIMES_OPEN]);
    base_json_number(json, "lost", function->how[CALL_TIMES_LOST]);
    base_json_number(json, "counted", told->counted);
    if (is_thinned(told))
        base_json_bool(json, "thinned", true);
    base_json_number(json, "total_ns", function->total_ns);
    base_json_number(json, "self_ns", function->self_ns);
    base_json_number(json, "min_ns", function->min_ns);
    base_json_number(json, "max_ns", function->max_ns);
    base_json_open(json, "histogram", '{'); // from so many ns on, to twice as many
    for (unsigned i = 0; i < CALL_TIMES_BUCKETS; i++) {
        char key[24];
        snprintf(key, sizeof key, "%" PRIu64, i ? (uint64_t)1 << i : 0);
        if (function->histogram[i])
            base_json_number(json, key, function->histogram[i]);
    }
    base_json_close(json, '}');
    base_json_close(json, '}');
}

// What so many per cent of the calls did not exceed: the bound of a bucket, or the longest call.
static uint64_t within_ns(const struct call_times_function *function, unsigned percent)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CALL_TIMES_BUCKETS; i++) {
        sum += function->histogram[i];
        uint64_t bound_ns = i < 63 ? (uint64_t)2 << i : UINT64_MAX;
        if (function->ended && sum * 100 >= function->ended * percent)
            return bound_ns < function->max_ns ? bound_ns : function->max_ns;
    }
    return 0;
}

static void print_name(const struct shown *shown, uint32_t index)
{
    char text[4 * NAME_COLUMNS + 8], whole[sizeof text + 64];
    const struct name *name = info_call_name(shown->printer, shown->calls, index);
    const struct call_events_function *told = &shown->calls->functions.items[index];
    const uint64_t one_of = call_events_one_of(told);
    names_shorten(name->function, NAME_COLUMNS, text, sizeof text);
    snprintf(whole, sizeof whole, "%s  [%s of %s]", text, one_of == UINT64_MAX ? "0" : "1",
             base_quantity_count(one_of == UINT64_MAX ? told->counted : one_of).text);
    info_print_end(shown->printer, is_thinned(told) ? whole : text);
}

static void print_function_text(const struct shown *shown, uint32_t index)
{
    FILE *output = shown->printer->output;
    const struct call_times_function *function = &shown->sums->functions[index];
    const struct call_events_function *told = &shown->calls->functions.items[index];
    fprintf(output, "  %13s%c ", base_quantity_count(function->calls + told->counted).text,
            is_thinned(told) ? '~'
            : told->counted  ? '+'
                             : ' ');
    fprintf(output, "%10s %10s ", function->calls ? base_quantity_time(function->total_ns).text : "-",
            function->calls ? base_quantity_time(function->self_ns).text : "-");
    if (!function->ended)
        fprintf(output, "%10s %10s %10s %10s  ", "-", "-", "-", "-");
    else
        fprintf(output, "%10s %10s %10s %10s  ", base_quantity_time(function->min_ns).text,
                base_quantity_time(within_ns(function, 50)).text, base_quantity_time(within_ns(function, 99)).text,
                base_quantity_time(function->max_ns).text);
    print_name(shown, index);
}

static int print_functions(const struct shown *shown)
{
    const struct printer *printer = shown->printer;
    const struct call_times_sums *sums = shown->sums;
    uint32_t *order = malloc((sums->function_count + 1) * sizeof *order);
    size_t count = 0, thinned = 0;
    if (!order)
        return -1;
    for (uint32_t i = 0; i < sums->function_count; i++) {
        if (sums->functions[i].calls || shown->calls->functions.items[i].counted)
            order[count++] = i;
        thinned += is_thinned(&shown->calls->functions.items[i]);
    }
    qsort_r(order, count, sizeof *order, most_total_first, sums->functions);
    if (printer->json)
        base_json_open(printer->json, "functions", '[');
    else
        fprintf(printer->output, "  %s%13s  %10s %10s %10s %10s %10s %10s  function%s%s\n",
                cli_style_head(printer->output), "calls", "total", "self", "shortest", "50 % <=", "99 % <=", "longest",
                thinned ? " (~: all counted, 1 of so many recorded, of which the times are; +: some counted only)"
                : shown->calls->counted ? " (+: some counted only)"
                                        : "",
                cli_style_end(printer->output));
    for (size_t i = 0; i < count && (printer->json || i < printer->rows); i++)
        (printer->json ? print_function_json : print_function_text)(shown, order[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    else if (count > printer->rows)
        fprintf(printer->output, "  and %zu more (--top N)\n", count - printer->rows);
    free(order);
    return 0;
}

// ---- who called whom

static void print_node(const struct shown *shown, uint32_t index)
{
    const struct call_times_node *node = &shown->sums->nodes.items[index];
    struct base_json *json = shown->printer->json;
    FILE *output = shown->printer->output;
    enum { INDENT_MAX = 60 };
    const unsigned indent = 2 * (node->depth - 1) < INDENT_MAX ? 2 * (node->depth - 1) : INDENT_MAX;
    if (!json) {
        fprintf(output, "  %13s  %10s %10s  %*s", base_quantity_count(node->calls).text,
                base_quantity_time(node->total_ns).text, base_quantity_time(node->self_ns).text, (int)indent, "");
        print_name(shown, node->function);
        return;
    }
    base_json_open(json, NULL, '{');
    base_json_number(json, "depth", node->depth);
    base_json_string(json, "function", info_call_name(shown->printer, shown->calls, node->function)->function);
    base_json_number(json, "calls", node->calls);
    base_json_number(json, "total_ns", node->total_ns);
    base_json_number(json, "self_ns", node->self_ns);
    base_json_close(json, '}');
}

// Of a large tree what has most of the time: nodes from so much on.
static uint64_t least_total(const struct call_times_sums *sums, const uint32_t *order, size_t rows)
{
    const size_t count = sums->nodes.count - 1;
    uint64_t low = 0, high = UINT64_MAX;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        size_t shown = 0;
        for (size_t i = 0; i < count; i++)
            shown += sums->nodes.items[order[i]].total_ns >= middle;
        if (shown <= rows)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int print_tree(const struct shown *shown)
{
    const struct printer *printer = shown->printer;
    const size_t count = shown->sums->nodes.count - 1, rows = printer->json ? JSON_NODES_MAX : 2 * printer->rows;
    uint32_t *order = call_times_tree_order(shown->sums);
    if (!order)
        return -1;
    const uint64_t least_ns = count > rows ? least_total(shown->sums, order, rows) : 0;
    size_t hidden = 0;
    if (printer->json)
        base_json_open(printer->json, "tree", '[');
    else
        fprintf(printer->output, "\n  who called whom\n  %s%13s  %10s %10s  function%s\n",
                cli_style_head(printer->output), "calls", "total", "self", cli_style_end(printer->output));
    for (size_t i = 0; i < count; i++) {
        const bool is_shown = shown->sums->nodes.items[order[i]].total_ns >= least_ns;
        if (is_shown)
            print_node(shown, order[i]);
        hidden += !is_shown;
    }
    if (printer->json) {
        base_json_close(printer->json, ']');
        base_json_number(printer->json, "tree_hidden", hidden);
    } else if (hidden) {
        fprintf(printer->output, "  and %zu more with less time (--top N)\n", hidden);
    }
    free(order);
    return 0;
}

static int print_process(const struct printer *printer, const struct call_events *calls)
{
    struct analysis_call_part part;
    struct call_times_sums sums;
    struct base_error error = {0};
    const struct shown shown = {.printer = printer, .calls = calls, .sums = &sums};
    if (!analysis_call_part_make(&part, printer->selection, calls))
        return -1;
    int status = call_times_sum(&sums, calls, &part.part, &error);
    if (status == 0) {
        if (printer->json)
            base_json_open(printer->json, NULL, '{');
        (printer->json ? print_account_json : print_account_text)(&shown);
        status = print_functions(&shown);
        if (status == 0)
            status = print_tree(&shown);
        if (printer->json)
            base_json_close(printer->json, '}');
        call_times_sums_free(&sums);
    }
    analysis_call_part_free(&part);
    return status;
}

int info_print_calls(const struct printer *printer)
{
    const struct trace *trace = printer->trace;
    int status = 0;
    if (printer->json)
        base_json_open(printer->json, "calls", '[');
    else if (!trace->calls_count)
        fputs("\n  calls     none were traced: qut trace does that\n", printer->output);
    for (size_t i = 0; i < trace->calls_count && status == 0; i++)
        status = print_process(printer, trace->calls[i]);
    if (printer->json)
        base_json_close(printer->json, ']');
    return status;
}
