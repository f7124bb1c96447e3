// SPDX-License-Identifier: Apache-2.0
// What functions cost: by themselves, and with all that they call, however often they stand in one stack.
#ifndef TRACER_EXPORT_FUNCTIONS_H
#define TRACER_EXPORT_FUNCTIONS_H

#include "tracer/export/export.h"

struct function_cost {
    uint32_t id; // of its name
    uint64_t self, total;
};

struct function_costs {
    struct function_cost *items; // largest self first
    size_t count;
    uint64_t sum;     // of all samples
    uint64_t samples; // that counted
};

// Of one process (index), or of all (TRACE_NONE). 0, or -1 without memory.
int export_functions_make(struct function_costs *costs, const struct trace *trace, const struct names *names,
                          enum measure measure, uint32_t process);
void export_functions_free(struct function_costs *costs);

#endif
