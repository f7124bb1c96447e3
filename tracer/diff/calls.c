// SPDX-License-Identifier: Apache-2.0
// Exact calls: counts and times of each function are known to the nanosecond, so nothing is sampled. Whether the next
// recording would say the same, only several recordings tell.
#include <math.h>
#include <stdlib.h>

#include "tracer/analysis/call_part.h"
#include "tracer/diff/inside.h"

static bool add_process(struct diff *diff, size_t recording, const struct names *names, const struct call_events *calls,
                        const struct call_times_sums *sums)
{
    for (size_t i = 0; i < sums->function_count; i++) {
        const struct call_times_function *of = &sums->functions[i];
        const struct call_events_function *traced = &calls->functions.items[i];
        if (!of->calls && !traced->counted)
            continue;
        // Not what is inlined at its entry.
        const uint32_t function =
            diff_function_of(diff, names_at(names, traced->node, names_count(names, traced->node) - 1));
        if (function == BASE_HASH_NONE)
            return false;
        struct diff_calls *to = &diff->calls.items[(size_t)function * diff_all(diff) + recording];
        to->count += of->calls + traced->counted;
        to->told += of->calls;
        to->total_ns += of->total_ns;
        to->self_ns += of->self_ns;
    }
    return true;
}

int diff_add_calls(struct diff *diff, size_t recording, const struct selection *selection, const struct names *names)
{
    const struct trace *trace = selection->whole;
    for (size_t i = 0; i < trace->calls_count; i++) {
        struct analysis_call_part part;
        struct call_times_sums sums;
        struct base_error error = {0};
        if (!analysis_call_part_make(&part, selection, trace->calls[i]))
            return -1;
        int status = call_times_sum(&sums, trace->calls[i], &part.part, &error);
        if (status == 0) {
            status = add_process(diff, recording, names, trace->calls[i], &sums) ? 0 : -1;
            call_times_sums_free(&sums);
        }
        analysis_call_part_free(&part);
        if (status != 0)
            return -1;
    }
    return 0;
}

static double self_change(const struct diff_call_row *row)
{
    return (double)row->of[DIFF_B].self_ns - (double)row->of[DIFF_A].self_ns;
}

static int by_self_change(const void *one, const void *other)
{
    const struct diff_call_row *a = one, *b = other;
    const double left = fabs(self_change(a)), right = fabs(self_change(b));
    if (left > right || right > left)
        return left > right ? -1 : 1;
    return a->function < b->function ? -1 : 1;
}

// The mean of each recording that has calls; a function that one of them lacks cannot be judged.
static bool fill_values(const struct diff *diff, const struct diff_call_row *row, double *values)
{
    for (size_t recording = 0; recording < diff_all(diff); recording++) {
        const struct diff_calls *calls = &diff->calls.items[(size_t)row->function * diff_all(diff) + recording];
        if (!calls->told)
            return false;
        values[recording] = (double)calls->total_ns / (double)calls->told;
    }
    return true;
}

static bool judge(struct diff *diff)
{
    const size_t all = diff_all(diff);
    double *values = calloc(diff->call_row_count * all + 1, sizeof *values);
    struct judge_item **items = calloc(diff->call_row_count + 1, sizeof(struct judge_item *));
    size_t count = 0;
    bool is_good = values && items;
    for (size_t i = 0; is_good && i < diff->call_row_count; i++) {
        struct diff_call_row *row = &diff->call_rows[i];
        row->by_mean = (struct judge_item){.values = {&values[count * all], &values[count * all + diff->recordings[0]]},
                                           .chance = 1,
                                           .correct = 1,
                                           .error = INFINITY};
        if (fill_values(diff, row, &values[count * all]))
            items[count++] = &row->by_mean;
    }
    is_good = is_good && diff_judge(items, count, diff->recordings, JUDGE_MEASURED) && diff_judge_correct(items, count);
    for (size_t i = 0; is_good && i < diff->call_row_count; i++)
        diff->call_rows[i].by_mean.values[0] = diff->call_rows[i].by_mean.values[1] = NULL;
    free(values);
    free(items);
    return is_good;
}

int diff_finish_calls(struct diff *diff)
{
    const size_t all = diff_all(diff);
    diff->call_rows = calloc(diff->functions.count + 1, sizeof *diff->call_rows);
    if (!diff->call_rows)
        return -1;
    for (uint32_t function = 0; function < diff->functions.count; function++) {
        struct diff_call_row *row = &diff->call_rows[diff->call_row_count];
        *row = (struct diff_call_row){.function = function};
        for (size_t recording = 0; recording < all; recording++) {
            const struct diff_calls *calls = &diff->calls.items[(size_t)function * all + recording];
            struct diff_calls *to = &row->of[recording < diff->recordings[0] ? DIFF_A : DIFF_B];
            to->count += calls->count;
            to->told += calls->told;
            to->total_ns += calls->total_ns;
            to->self_ns += calls->self_ns;
        }
        diff->call_row_count += row->of[DIFF_A].count || row->of[DIFF_B].count;
    }
    if (!judge(diff))
        return -1;
    qsort(diff->call_rows, diff->call_row_count, sizeof *diff->call_rows, by_self_change);
    return 0;
}
