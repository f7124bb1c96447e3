// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "tracer/analysis/weights.h"

static int compare_spots(const void *a, const void *b)
{
    const struct hot_spot *left = a, *right = b;
    if (left->self != right->self)
        return left->self > right->self ? -1 : 1;
    if (left->total != right->total)
        return left->total > right->total ? -1 : 1;
    return left->node < right->node ? -1 : left->node > right->node;
}

int analysis_hot_spots_make(struct hot_spots *to, const struct trace *trace, enum measure measure, uint32_t process)
{
    *to = (struct hot_spots){.items = calloc(trace->node_count + 1, sizeof *to->items)};
    if (!to->items)
        return -1;
    for (size_t t = 0; t < trace->thread_count; t++) {
        struct weights_walk walk;
        struct weights weights;
        const struct trace_sample *sample;
        if (process != TRACE_NONE && trace->threads[t].process != process)
            continue;
        analysis_weights_begin(&walk, trace, &trace->threads[t]);
        while (analysis_weights_next(&walk, &sample, &weights)) {
            uint64_t weight = weights.of[measure];
            to->items[sample->node].self += weight;
            to->sum += weight;
            to->samples += weight ? sample->count : 0;
        }
    }
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

double analysis_share_error(double share, uint64_t samples)
{
    if (!samples)
        return 1;
    double left = share * (1 - share);
    return left > 0 ? 1.96 * sqrt(left / (double)samples) : 0;
}
