// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tracer/export/otlp/inside.h"

// UINT32_MAX: no memory.
static uint32_t need(struct otlp_stacks *stacks, uint32_t outer, uint32_t place)
{
    const uint64_t hash = base_hash_word(0, (uint64_t)outer << 32 | place);
    for (uint32_t step = 0, i; (i = base_hash_next(&stacks->index, hash, &step)) != BASE_HASH_NONE;)
        if (stacks->items[i].outer == outer && stacks->items[i].place == place)
            return i;
    struct otlp_stack *stack = BASE_ADD(stacks);
    if (!stack || !base_hash_add(&stacks->index, hash, (uint32_t)stacks->count - 1))
        return UINT32_MAX;
    *stack = (struct otlp_stack){.outer = outer, .place = place};
    return (uint32_t)stacks->count - 1;
}

int export_otlp_stacks_make(struct otlp_stacks *stacks, const struct trace *trace, const struct locations *locations,
                            const struct otlp_places *places)
{
    // Index 0 is nobody's: it stands for nothing outside.
    struct otlp_stack *none = BASE_ADD(stacks);
    stacks->of_node = calloc(trace->node_count + 1, sizeof *stacks->of_node);
    if (!none || !stacks->of_node)
        return -1;
    *none = (struct otlp_stack){0};
    stacks->of_node[0] = need(stacks, 0, places->count);
    bool has_memory = stacks->of_node[0] != UINT32_MAX;
    for (uint32_t node = 1; node < trace->node_count && has_memory; node++) {
        const uint32_t parent = trace->nodes[node].parent; // a smaller number
        if (!locations->of_node[node])
            continue;
        stacks->of_node[node] =
            need(stacks, parent ? stacks->of_node[parent] : 0, places->of_location[locations->of_node[node]]);
        has_memory = stacks->of_node[node] != UINT32_MAX;
    }
    return has_memory ? 0 : -1;
}

// ---- their order

struct branch {
    uint32_t place, stack;
};

static int compare_places(const void *left, const void *right)
{
    const struct branch *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

// The tree's branches, each below the one outside of it, in the order of their places.
struct tree {
    uint32_t *first, *next; // by a stack's index; 0: there is none
};

static void grow_tree(const struct otlp_stacks *stacks, struct tree *tree, struct branch *branches)
{
    size_t count = 0;
    for (uint32_t i = 1; i < stacks->count; i++)
        branches[count++] = (struct branch){stacks->items[i].place, i};
    qsort(branches, count, sizeof *branches, compare_places);
    for (size_t i = count; i-- > 0;) { // each becomes the first one
        const uint32_t stack = branches[i].stack, outer = stacks->items[stack].outer;
        tree->next[stack] = tree->first[outer];
        tree->first[outer] = stack;
    }
}

static void number_branches(struct otlp_stacks *stacks, const struct tree *tree)
{
    for (uint32_t at = tree->first[0]; at;) {
        if (stacks->items[at].is_used)
            stacks->items[at].number = ++stacks->used;
        if (tree->first[at]) {
            at = tree->first[at];
            continue;
        }
        while (at && !tree->next[at])
            at = stacks->items[at].outer;
        at = tree->next[at];
    }
}

int export_otlp_stacks_number(struct otlp_stacks *stacks)
{
    struct tree tree = {calloc(stacks->count + 1, sizeof *tree.first), calloc(stacks->count + 1, sizeof *tree.next)};
    struct branch *branches = calloc(stacks->count + 1, sizeof *branches);
    const bool has_memory = tree.first && tree.next && branches;
    if (has_memory) {
        grow_tree(stacks, &tree, branches);
        number_branches(stacks, &tree);
    }
    free(branches);
    free(tree.first);
    free(tree.next);
    return has_memory ? 0 : -1;
}

void export_otlp_stacks_free(struct otlp_stacks *stacks)
{
    base_vector_free(&stacks->vector);
    base_hash_free(&stacks->index);
    free(stacks->of_node);
}
