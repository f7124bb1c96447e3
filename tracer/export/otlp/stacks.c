// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tracer/export/otlp/inside.h"

// UINT32_MAX: no memory.
static uint32_t need(struct otlp_stacks *stacks, uint32_t outer, uint32_t location)
{
    const uint64_t hash = base_hash_word(0, (uint64_t)outer << 32 | location);
    for (uint32_t step = 0, i; (i = base_hash_next(&stacks->index, hash, &step)) != BASE_HASH_NONE;)
        if (stacks->items[i].outer == outer && stacks->items[i].location == location)
            return i;
    struct otlp_stack *stack = BASE_ADD(stacks);
    if (!stack || !base_hash_add(&stacks->index, hash, (uint32_t)stacks->count - 1))
        return UINT32_MAX;
    *stack = (struct otlp_stack){.outer = outer, .location = location};
    return (uint32_t)stacks->count - 1;
}

int export_otlp_stacks_make(struct otlp_stacks *stacks, const struct trace *trace, const struct locations *locations,
                            uint32_t empty)
{
    // Index 0 is nobody's: it stands for nothing outside.
    struct otlp_stack *none = BASE_ADD(stacks);
    stacks->of_node = calloc(trace->node_count + 1, sizeof *stacks->of_node);
    if (!none || !stacks->of_node)
        return -1;
    *none = (struct otlp_stack){0};
    stacks->of_node[0] = need(stacks, 0, empty);
    bool has_memory = stacks->of_node[0] != UINT32_MAX;
    for (uint32_t node = 1; node < trace->node_count && has_memory; node++) {
        const uint32_t parent = trace->nodes[node].parent; // a smaller number
        if (!locations->of_node[node])
            continue;
        stacks->of_node[node] = need(stacks, parent ? stacks->of_node[parent] : 0, locations->of_node[node]);
        has_memory = stacks->of_node[node] != UINT32_MAX;
    }
    return has_memory ? 0 : -1;
}

uint32_t export_otlp_stacks_use(struct otlp_stacks *stacks, uint32_t stack)
{
    struct otlp_stack *used = &stacks->items[stack];
    if (!used->number)
        used->number = ++stacks->used;
    return used->number;
}

void export_otlp_stacks_free(struct otlp_stacks *stacks)
{
    base_vector_free(&stacks->vector);
    base_hash_free(&stacks->index);
    free(stacks->of_node);
}
