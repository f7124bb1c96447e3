// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/weight_words.h"

const char *export_weights_unit(unsigned weight)
{
    static const char *const units[EXPORT_WEIGHT_COUNT] = {
        [EXPORT_WEIGHT_SAMPLES] = "samples",      [EXPORT_WEIGHT_TIME] = "nanoseconds",
        [EXPORT_WEIGHT_CPU_TIME] = "nanoseconds", [EXPORT_WEIGHT_BYTES] = "bytes",
        [EXPORT_WEIGHT_BLOCKED] = "nanoseconds",  [EXPORT_WEIGHT_ALLOCATIONS] = "allocations",
        [EXPORT_WEIGHT_FAULTS] = "faults",
    };
    return units[weight];
}

const char *export_weights_name(unsigned weight)
{
    static const char *const names[EXPORT_WEIGHT_COUNT] = {
        [EXPORT_WEIGHT_SAMPLES] = "samples", [EXPORT_WEIGHT_TIME] = "time",
        [EXPORT_WEIGHT_CPU_TIME] = "cpu",    [EXPORT_WEIGHT_BYTES] = "bytes",
        [EXPORT_WEIGHT_BLOCKED] = "blocked", [EXPORT_WEIGHT_ALLOCATIONS] = "allocations",
        [EXPORT_WEIGHT_FAULTS] = "faults",
    };
    return names[weight];
}
