// SPDX-License-Identifier: Apache-2.0
// What functions cost: by themselves, and with all that they call, however often they stand in one stack.
#ifndef TRACER_EXPORT_FUNCTIONS_H
#define TRACER_EXPORT_FUNCTIONS_H

#include "tracer/export/export.h"

struct function_cost {
    uint32_t id; // of its name
    uint64_t self, total;
    uint64_t self_told, total_told; // of these, by the coarse clock
};

struct function_costs {
    struct function_cost *items; // largest self first
    size_t count;
    struct share_basis basis;
    uint64_t samples; // that counted
    uint64_t own;     // as in struct hot_spots
    double own_share, own_error;
};

// Of a selection that leaves the agent in. 0, or -1 without memory.
int export_functions_make(struct function_costs *costs, const struct selection *selection, const struct names *names,
                          enum measure measure, bool with_own);
// The same, with names that count as one function: of_id[id] < count is the function's number, which `id` is then. In
// one stack such a function counts once, too.
struct function_groups {
    const uint32_t *of_id;
    size_t count;
};
int export_functions_of_groups(struct function_costs *costs, const struct selection *selection,
                               const struct names *names, const struct function_groups *groups, enum measure measure,
                               bool with_own);
void export_functions_free(struct function_costs *costs);

#endif
