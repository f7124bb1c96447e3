// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/pprof/pprof_types.h"

#include "tracer/export/weight_words.h"

static struct pprof_type type_of(unsigned measure)
{
    bool is_count = measure == MEASURE_SAMPLES || measure == MEASURE_ALLOCATIONS || measure == MEASURE_FAULTS;
    return (struct pprof_type){export_weights_name(measure), is_count ? "count" : export_weights_unit(measure),
                               (enum measure)measure};
}

static void add(struct pprof_types *types, const char *name, const char *unit, enum measure measure)
{
    types->items[types->count++] = (struct pprof_type){name, unit, measure};
}

static void add_own(struct pprof_types *types, enum selection_kind kind)
{
    switch (kind) {
    case SELECTION_CPU:
        add(types, "samples", "count", MEASURE_SAMPLES);
        add(types, "cpu", "nanoseconds", MEASURE_CPU);
        return;
    case SELECTION_WALL:
        add(types, "samples", "count", MEASURE_SAMPLES);
        add(types, "wall", "nanoseconds", MEASURE_WALL);
        return;
    case SELECTION_ALLOC:
        add(types, "alloc_objects", "count", MEASURE_ALLOCATIONS);
        add(types, "alloc_space", "bytes", MEASURE_BYTES);
        return;
    case SELECTION_LOCK:
        add(types, "contentions", "count", MEASURE_SAMPLES);
        add(types, "delay", "nanoseconds", MEASURE_BLOCKED);
        return;
    case SELECTION_IO:
        add(types, "calls", "count", MEASURE_SAMPLES);
        add(types, "delay", "nanoseconds", MEASURE_BLOCKED);
        return;
    case SELECTION_OTHER: add(types, "samples", "count", MEASURE_SAMPLES); return;
    default:
        for (unsigned measure = 0; measure < MEASURE_COUNT; measure++)
            types->items[types->count++] = type_of(measure);
    }
}

static void set_period(struct pprof_types *types, const struct selection *selection)
{
    uint64_t samples = selection->sums[MEASURE_SAMPLES];
    bool is_sampled =
        selection->kind == SELECTION_CPU || selection->kind == SELECTION_WALL || selection->kind == SELECTION_ALLOC;
    if (!is_sampled || !samples)
        return;
    const struct pprof_type *last = &types->items[1];
    types->period_name = selection->kind == SELECTION_ALLOC ? "space" : last->name;
    types->period_unit = last->unit;
    types->period = (selection->sums[last->measure] + samples / 2) / samples;
}

struct pprof_types export_pprof_types(const struct selection *selection, unsigned weight)
{
    struct pprof_types types = {0};
    add_own(&types, selection->kind);
    set_period(&types, selection);
    for (; types.default_type < types.count; types.default_type++)
        if (types.items[types.default_type].measure == (enum measure)weight)
            return types;
    types.items[types.count++] = type_of(weight); // asked for
    return types;
}
