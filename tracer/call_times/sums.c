// SPDX-License-Identifier: Apache-2.0
#include "tracer/call_times/sums.h"

#include <stdlib.h>

enum { UNWANTED = UINT32_MAX };

struct summer {
    struct call_times_sums *sums;
    const struct call_times_part *part;
    struct base_hash_index children; // nodes by parent and function
    bool no_memory;
};

static uint32_t child_of(struct summer *summer, uint32_t parent, uint32_t function)
{
    struct call_times_sums *sums = summer->sums;
    const struct call_times_node *nodes = sums->nodes.items;
    const uint64_t hash = base_hash_word(0, (uint64_t)parent << 32 | function);
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&summer->children, hash, &step)) != BASE_HASH_NONE;)
        if (nodes[found].parent == parent && nodes[found].function == function)
            return found;
    if (sums->nodes.count == CALL_TIMES_NODES_MAX) {
        sums->folded++;
        return parent;
    }
    bool is_within = false;
    for (uint32_t at = parent; at && !is_within; at = nodes[at].parent)
        is_within = nodes[at].function == function;
    found = (uint32_t)sums->nodes.count;
    struct call_times_node *node = base_hash_add(&summer->children, hash, found) ? BASE_ADD(&sums->nodes) : NULL;
    if (!node) {
        summer->no_memory = true;
        return parent;
    }
    *node = (struct call_times_node){
        .parent = parent, .function = function, .depth = sums->nodes.items[parent].depth + 1, .is_within = is_within};
    return found;
}

static void enter(void *context, struct call_times_call *call, const struct call_times_call *outer)
{
    struct summer *summer = context;
    const struct call_times_part *part = summer->part;
    const bool is_wanted = call->begin_ns >= part->from_ns && call->begin_ns <= part->to_ns &&
                           (!part->threads || part->threads[call->thread]);
    call->own = UNWANTED;
    if (is_wanted && !summer->no_memory)
        call->own = child_of(summer, outer && outer->own != UNWANTED ? (uint32_t)outer->own : 0, call->function);
}

static unsigned bucket_of(uint64_t ns)
{
    return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

static void leave(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct summer *summer = context;
    if (call->own == UNWANTED)
        return;
    struct call_times_function *function = &summer->sums->functions[call->function];
    struct call_times_node *node = &summer->sums->nodes.items[call->own];
    const uint64_t ns = call->end_ns - call->begin_ns, self_ns = ns > call->callees_ns ? ns - call->callees_ns : 0;
    function->calls++;
    function->how[call->how]++;
    function->self_ns += self_ns;
    function->total_ns += node->is_within || node->function != call->function ? 0 : ns;
    node->self_ns += self_ns;
    if (node->function == call->function) { // else it is folded into another one's
        node->calls++;
        node->total_ns += ns;
    }
    if (call->how == CALL_TIMES_OPEN || call->how == CALL_TIMES_LOST)
        return;
    function->min_ns = !function->ended || ns < function->min_ns ? ns : function->min_ns;
    function->max_ns = ns > function->max_ns ? ns : function->max_ns;
    function->ended++;
    function->histogram[bucket_of(ns)]++;
}

int call_times_sum(struct call_times_sums *sums, const struct call_events *calls, const struct call_times_part *part,
                   struct base_error *error)
{
    static const struct call_times_part all = {0, UINT64_MAX, NULL};
    struct summer summer = {.sums = sums, .part = part ? part : &all};
    const struct call_times_visitor visitor = {.enter = enter, .leave = leave, .context = &summer};
    *sums = (struct call_times_sums){.function_count = calls->functions.count};
    sums->functions = calloc(calls->functions.count + 1, sizeof *sums->functions);
    struct call_times_node *root = BASE_ADD(&sums->nodes);
    int status = -1;
    if (sums->functions && root) {
        *root = (struct call_times_node){.function = CALL_EVENTS_NONE};
        status = call_times_walk(calls, &visitor, &sums->account, error);
    } else {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for sums of calls");
    }
    base_hash_free(&summer.children);
    if (status == 0 && summer.no_memory)
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the tree of calls");
    if (status != 0)
        call_times_sums_free(sums);
    return status;
}

void call_times_sums_free(struct call_times_sums *sums)
{
    free(sums->functions);
    base_vector_free(&sums->nodes.vector);
    *sums = (struct call_times_sums){0};
}

static int by_parent_and_total(const void *one, const void *other, void *context)
{
    const struct call_times_node *nodes = context;
    const uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    const struct call_times_node *a = &nodes[left], *b = &nodes[right];
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return left < right ? -1 : 1;
}

uint32_t *call_times_tree_order(const struct call_times_sums *sums)
{
    const size_t count = sums->nodes.count - 1;
    uint32_t *sorted = malloc((count + 1) * sizeof *sorted), *order = malloc((count + 1) * sizeof *order);
    size_t *first = calloc(sums->nodes.count + 2, sizeof *first); // of each node's children in `sorted`
    uint32_t *next = calloc(sums->nodes.count + 1, sizeof *next);
    if (sorted && order && first && next) {
        for (size_t i = 0; i < count; i++)
            sorted[i] = (uint32_t)i + 1;
        qsort_r(sorted, count, sizeof *sorted, by_parent_and_total, sums->nodes.items);
        for (size_t i = 0; i < count; i++)
            first[sums->nodes.items[sorted[i]].parent + 1]++;
        for (size_t i = 1; i <= sums->nodes.count; i++)
            first[i] += first[i - 1];
        for (size_t done = 0, at = 0; done < count;) {
            if (first[at] + next[at] == first[at + 1]) {
                at = sums->nodes.items[at].parent;
                continue;
            }
            at = order[done++] = sorted[first[at] + next[at]++];
        }
    } else {
        free(order);
        order = NULL;
    }
    free(sorted);
    free(first);
    free(next);
    return order;
}
