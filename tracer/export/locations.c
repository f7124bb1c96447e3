// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/locations.h"

#include <stdlib.h>

#include "base/hash_index.h"

static void use(const struct trace *trace, uint32_t *of_node, uint32_t node)
{
    for (; node && !of_node[node]; node = trace->nodes[node].parent)
        of_node[node] = 1;
}

static void use_samples(const struct trace *trace, uint32_t *of_node)
{
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        for (size_t s = 0; s < thread->sample_count; s++)
            use(trace, of_node, trace->samples[thread->first_sample + s].node);
    }
}

// The number of a function and a line, which nobody else knows: its name, with its line where that was asked for, is
// all that there is to say.
static bool is_number(const struct trace_node *at)
{
    return at->class_ == QUT_TRACE_CLASS_DEX && qut_trace_is_number(at->pc);
}

bool export_location_has_address(const struct trace_node *at)
{
    return !at->label && !is_number(at);
}

static bool is_same_place(const struct trace *trace, const struct names *names, uint32_t a, uint32_t b)
{
    const struct trace_node *left = &trace->nodes[a], *right = &trace->nodes[b];
    // What has no address: its name is all of it.
    return left->module == right->module && left->class_ == right->class_ && !left->label == !right->label &&
           export_location_has_address(left) == export_location_has_address(right) &&
           (!export_location_has_address(left) || left->pc == right->pc) &&
           names_at(names, a, 0)->id == names_at(names, b, 0)->id;
}

static uint64_t hash_of(const struct trace *trace, const struct names *names, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    return base_hash_word(base_hash_word(0, export_location_has_address(at) ? at->pc : 0),
                          (uint64_t)at->module << 32 | names_at(names, node, 0)->id);
}

int export_locations_make(struct locations *locations, const struct trace *trace, const struct names *names)
{
    struct base_hash_index index = {0};
    *locations = (struct locations){.of_node = calloc(trace->node_count + 1, sizeof *locations->of_node),
                                    .nodes = calloc(trace->node_count + 1, sizeof *locations->nodes)};
    bool is_good = locations->of_node && locations->nodes;
    if (is_good)
        use_samples(trace, locations->of_node);
    for (uint32_t node = 1; is_good && node < trace->node_count; node++) {
        if (!locations->of_node[node])
            continue;
        uint64_t hash = hash_of(trace, names, node);
        uint32_t i;
        for (uint32_t step = 0; (i = base_hash_next(&index, hash, &step)) != BASE_HASH_NONE;)
            if (is_same_place(trace, names, locations->nodes[i], node))
                break;
        if (i == BASE_HASH_NONE) {
            i = (uint32_t)locations->count;
            locations->nodes[locations->count++] = node;
            is_good = base_hash_add(&index, hash, i);
        }
        locations->of_node[node] = i + 1;
    }
    base_hash_free(&index);
    if (!is_good)
        export_locations_free(locations);
    return is_good ? 0 : -1;
}

void export_locations_free(struct locations *locations)
{
    free(locations->of_node);
    free(locations->nodes);
    *locations = (struct locations){0};
}

uint64_t export_location_address(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (at->label)
        return 0;
    if (at->module == TRACE_NONE)
        return at->pc;
    const struct trace_module *module = &trace->modules[at->module];
    // No file: it may be an address already; of a method that is interpreted it is its description's.
    if (module->flags & QUT_TRACE_MODULE_JIT && (at->pc >= module->start || at->class_ == QUT_TRACE_CLASS_DEX))
        return at->pc;
    return module->start + (at->pc - module->start_vaddr);
}
