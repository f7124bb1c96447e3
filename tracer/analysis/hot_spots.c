// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/analysis/agent_frames.h"
#include "tracer/analysis/cpu_account.h"
#include "tracer/analysis/selection.h"

static int compare_spots(const void *a, const void *b)
{
    const struct hot_spot *left = a, *right = b;
    if (left->self != right->self)
        return left->self > right->self ? -1 : 1;
    if (left->total != right->total)
        return left->total > right->total ? -1 : 1;
    return left->node < right->node ? -1 : left->node > right->node;
}

// Of one of the clocks.
struct weight_sums {
    uint64_t sum;
    double squares;
};

static void add(struct weight_sums *sums, uint64_t weight, uint32_t count)
{
    sums->sum += weight;
    sums->squares += (double)weight * (double)weight / (count ? count : 1);
}

static double worth(const struct weight_sums *sums)
{
    return sums->squares > 0 ? (double)sums->sum * (double)sums->sum / sums->squares : 0;
}

uint64_t analysis_kernel_tick_ns(const struct trace *trace)
{
    for (size_t i = 0; i < trace->note_count; i++)
        if (!trace->notes[i].text && strcmp(trace->notes[i].name, "kernel-tick-ns") == 0 && trace->notes[i].value)
            return trace->notes[i].value;
    return 0;
}

static struct share_basis basis_of(const struct trace *trace, const struct weight_sums sums[2])
{
    struct share_basis basis = {.sum = sums[0].sum + sums[1].sum, .told_sum = sums[1].sum, .ticks = worth(&sums[0])};
    if (basis.told_sum) {
        uint64_t tick_ns = analysis_kernel_tick_ns(trace);
        double most = tick_ns ? (double)basis.sum / (double)tick_ns : 0; // how often the kernel looked in all that time
        basis.looks = worth(&sums[1]) * (double)basis.sum / (double)basis.told_sum;
        if (most > 0 && most < basis.looks)
            basis.looks = most;
    }
    return basis;
}

static bool is_own(const struct trace *trace, const struct trace_sample *sample, enum measure measure)
{
    bool is_time = measure == MEASURE_CPU || measure == MEASURE_WALL || measure == MEASURE_SAMPLES;
    return is_time && analysis_is_own(trace, sample);
}

// What none of so many samples met may still be 3 of them.
static double three_of(double samples)
{
    return samples > 3 ? 3 / samples : 1;
}

static void set_own(struct hot_spots *to, const struct trace *trace, const struct weight_sums all[2], uint64_t told)
{
    struct share_basis basis = basis_of(trace, all);
    if (!basis.sum || (basis.ticks <= 0 && basis.looks <= 0))
        return;
    double k = (double)basis.told_sum / (double)basis.sum, error = analysis_share_error(&basis, to->own, told);
    double least = (1 - k) * three_of(basis.ticks) + k * three_of(basis.looks);
    to->own_share = (double)to->own / (double)basis.sum;
    to->own_error = error > least ? error : least;
}

int analysis_hot_spots_make(struct hot_spots *to, const struct selection *selection, enum measure measure,
                            bool with_own)
{
    const struct trace *trace = &selection->trace;
    struct weight_sums sums[2] = {{0, 0}, {0, 0}}, all[2] = {{0, 0}, {0, 0}};
    uint64_t own_told = 0;
    *to = (struct hot_spots){.items = calloc(trace->node_count + 1, sizeof *to->items)};
    if (!to->items)
        return -1;
    for (size_t i = 0; i < trace->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[i];
        uint64_t weight = selection->weights[i][measure];
        bool is_told = measure == MEASURE_CPU && analysis_cpu_is_told(trace, sample);
        add(&all[is_told], weight, sample->count);
        if (is_own(trace, sample, measure)) {
            to->own += weight;
            own_told += is_told ? weight : 0;
            if (!with_own)
                continue;
        }
        to->items[sample->node].self += weight;
        to->items[sample->node].self_told += is_told ? weight : 0;
        to->samples += weight && (!trace->unticked_node || sample->node != trace->unticked_node) ? sample->count : 0;
        add(&sums[is_told], weight, sample->count);
    }
    to->basis = basis_of(trace, sums);
    set_own(to, trace, all, own_told);
    // Children stand behind their parents: their sums are whole when they are added.
    for (size_t node = trace->node_count; node-- > 0;) {
        struct hot_spot *spot = &to->items[node];
        spot->node = (uint32_t)node;
        spot->total += spot->self;
        if (node)
            to->items[trace->nodes[node].parent].total += spot->total;
    }
    for (size_t node = 0; node < trace->node_count; node++)
        if (to->items[node].total)
            to->items[to->count++] = to->items[node];
    qsort(to->items, to->count, sizeof *to->items, compare_spots);
    return 0;
}

void analysis_hot_spots_free(struct hot_spots *spots)
{
    free(spots->items);
    *spots = (struct hot_spots){0};
}

double analysis_share_error(const struct share_basis *basis, uint64_t weight, uint64_t told)
{
    if (!basis->sum || (basis->ticks <= 0 && basis->looks <= 0))
        return 1;
    double sum = (double)basis->sum, k = (double)basis->told_sum / sum, b = (double)told / sum;
    double user_sum = sum - (double)basis->told_sum, q = user_sum > 0 ? (double)(weight - told) / user_sum : 0;
    double of_looks = b * (1 - b) + q * q * k * (1 - k) - 2 * q * b * (1 - k);
    double of_ticks = (1 - k) * (1 - k) * q * (1 - q);
    double variance = (basis->looks > 0 && of_looks > 0 ? of_looks / basis->looks : 0) +
                      (basis->ticks > 0 && of_ticks > 0 ? of_ticks / basis->ticks : 0);
    return variance < 0.26 ? 1.96 * sqrt(variance) : 1;
}
