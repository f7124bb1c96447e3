// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/weight_words.h"

#include <stdio.h>
#include <string.h>

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

struct base_quantity export_weights_amount(unsigned weight, uint64_t amount)
{
    switch (weight) {
    case EXPORT_WEIGHT_TIME:
    case EXPORT_WEIGHT_CPU_TIME:
    case EXPORT_WEIGHT_BLOCKED: return base_quantity_time(amount);
    case EXPORT_WEIGHT_BYTES: return base_quantity_bytes(amount);
    }
    struct base_quantity quantity = base_quantity_count(amount);
    size_t used = strlen(quantity.text);
    if (weight != EXPORT_WEIGHT_SAMPLES) // which are said beside it
        snprintf(quantity.text + used, sizeof quantity.text - used, " %s", export_weights_unit(weight));
    return quantity;
}
