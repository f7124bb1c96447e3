// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/flows.h"

#include <stdlib.h>

static int compare_flows(const void *a, const void *b)
{
    const struct flow *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return (left->sample > right->sample) - (left->sample < right->sample);
}

static bool flow_of(const struct trace *trace, const struct trace_sample *sample, struct flow *flow)
{
    flow->sample = sample;
    flow->time_ns = sample->first_ns;
    return sample->extra_count && trace_extra(trace, sample, QUT_TRACE_EXTRA_FLOW, &flow->id);
}

int export_flows_make(struct flows *flows, const struct trace *trace)
{
    struct flow flow;
    size_t count = 0;
    for (size_t i = 0; i < trace->sample_count; i++)
        count += flow_of(trace, &trace->samples[i], &flow);
    *flows = (struct flows){.items = calloc(count + 1, sizeof *flows->items)};
    if (!flows->items)
        return -1;
    for (size_t i = 0; i < trace->sample_count; i++)
        if (flow_of(trace, &trace->samples[i], &flow))
            flows->items[flows->count++] = flow;
    qsort(flows->items, flows->count, sizeof *flows->items, compare_flows);
    return 0;
}

enum flow_step export_flows_find(const struct flows *flows, const struct trace *trace,
                                 const struct trace_sample *sample, uint64_t *id)
{
    struct flow wanted;
    if (!flow_of(trace, sample, &wanted))
        return FLOW_NONE;
    const struct flow *found = bsearch(&wanted, flows->items, flows->count, sizeof wanted, compare_flows);
    if (!found)
        return FLOW_NONE;
    *id = wanted.id;
    bool has_before = found > flows->items && found[-1].id == wanted.id;
    bool has_after = found + 1 < flows->items + flows->count && found[1].id == wanted.id;
    return has_before ? has_after ? FLOW_STEP : FLOW_END : has_after ? FLOW_START : FLOW_NONE;
}

void export_flows_free(struct flows *flows)
{
    free(flows->items);
}
