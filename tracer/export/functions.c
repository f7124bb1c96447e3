// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/functions.h"

#include <stdlib.h>

static int compare_costs(const void *a, const void *b)
{
    const struct function_cost *left = a, *right = b;
    if (left->self != right->self)
        return left->self > right->self ? -1 : 1;
    if (left->total != right->total)
        return left->total > right->total ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

// Of one stack, `number`: each function once.
static void add_stack(struct function_costs *costs, const struct trace *trace, const struct names *names,
                      const struct function_groups *groups, const struct hot_spot *spot, uint32_t *seen,
                      uint32_t number)
{
    bool is_innermost = true;
    for (uint32_t node = spot->node; node; node = trace->nodes[node].parent)
        for (size_t i = 0; i < names_count(names, node); i++) {
            uint32_t id = names_at(names, node, i)->id;
            id = groups ? groups->of_id[id] : id;
            struct function_cost *cost = &costs->items[id];
            if (is_innermost) {
                cost->self += spot->self;
                cost->self_told += spot->self_told;
            }
            is_innermost = false;
            if (seen[id] != number) {
                cost->total += spot->self;
                cost->total_told += spot->self_told;
            }
            seen[id] = number;
        }
}

int export_functions_of_groups(struct function_costs *costs, const struct selection *selection,
                               const struct names *names, const struct function_groups *groups, enum measure measure,
                               bool with_own)
{
    size_t count = groups ? groups->count : names_id_count(names);
    struct hot_spots spots;
    uint32_t *seen = calloc(count + 1, sizeof *seen);
    *costs = (struct function_costs){.items = calloc(count + 1, sizeof *costs->items)};
    if (!seen || !costs->items || analysis_hot_spots_make(&spots, selection, measure, with_own) != 0) {
        free(seen);
        export_functions_free(costs);
        return -1;
    }
    for (uint32_t id = 0; id < count; id++)
        costs->items[id].id = id;
    for (size_t i = 0; i < spots.count && spots.items[i].self; i++)
        add_stack(costs, &selection->trace, names, groups, &spots.items[i], seen, (uint32_t)i + 1);
    costs->basis = spots.basis;
    costs->samples = spots.samples;
    costs->own = spots.own;
    costs->own_share = spots.own_share;
    costs->own_error = spots.own_error;
    for (size_t id = 0; id < count; id++)
        if (costs->items[id].total)
            costs->items[costs->count++] = costs->items[id];
    qsort(costs->items, costs->count, sizeof *costs->items, compare_costs);
    analysis_hot_spots_free(&spots);
    free(seen);
    return 0;
}

int export_functions_make(struct function_costs *costs, const struct selection *selection, const struct names *names,
                          enum measure measure, bool with_own)
{
    return export_functions_of_groups(costs, selection, names, NULL, measure, with_own);
}

void export_functions_free(struct function_costs *costs)
{
    free(costs->items);
    *costs = (struct function_costs){0};
}
