// SPDX-License-Identifier: Apache-2.0
// The values that a sample of a profile has: of each kind its own, named as Go's profiles name them, since readers know
// a heap profile and a profile of contention by these names.
#ifndef TRACER_EXPORT_PPROF_TYPES_H
#define TRACER_EXPORT_PPROF_TYPES_H

#include "tracer/export/export.h"

struct pprof_type {
    const char *name, *unit;
    enum measure measure;
};

struct pprof_types {
    struct pprof_type items[MEASURE_COUNT + 1];
    size_t count, default_type;
    const char *period_name, *period_unit;
    uint64_t period; // what one sample stands for, on average; 0: nothing that has a name
};

struct pprof_types export_pprof_types(const struct selection *selection, unsigned weight);

#endif
