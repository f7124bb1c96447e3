// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/locations.h"

#include <stdlib.h>

static void use(const struct trace *trace, uint32_t *of_node, uint32_t node)
{
    for (; node && !of_node[node]; node = trace->nodes[node].parent)
        of_node[node] = 1;
}

static void use_samples(const struct trace *trace, uint32_t *of_node, uint32_t uid)
{
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        for (size_t s = 0; s < thread->sample_count && (!uid || thread->uid == uid); s++)
            use(trace, of_node, trace->samples[thread->first_sample + s].node);
    }
}

static bool is_same_place(const struct trace *trace, const struct names *names, uint32_t a, uint32_t b)
{
    const struct trace_node *left = &trace->nodes[a], *right = &trace->nodes[b];
    return left->module == right->module && left->pc == right->pc && left->label == right->label &&
           names_at(names, a, 0)->id == names_at(names, b, 0)->id;
}

static size_t hash_place(const struct trace *trace, const struct names *names, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    uint64_t hash = (at->pc ^ (uint64_t)at->module << 40) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ names_at(names, node, 0)->id) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 20);
}

int locations_make(struct locations *locations, const struct trace *trace, const struct names *names, uint32_t uid)
{
    size_t place_count = 2;
    while (place_count < 2 * trace->node_count)
        place_count *= 2;
    uint32_t *places = calloc(place_count, sizeof *places); // number, hashed
    *locations = (struct locations){.of_node = calloc(trace->node_count + 1, sizeof *locations->of_node),
                                    .nodes = calloc(trace->node_count + 1, sizeof *locations->nodes)};
    if (!places || !locations->of_node || !locations->nodes) {
        free(places);
        locations_free(locations);
        return -1;
    }
    use_samples(trace, locations->of_node, uid);
    for (uint32_t node = 1; node < trace->node_count; node++) {
        if (!locations->of_node[node])
            continue;
        size_t place = hash_place(trace, names, node) & (place_count - 1);
        while (places[place] && !is_same_place(trace, names, locations->nodes[places[place] - 1], node))
            place = (place + 1) & (place_count - 1);
        if (!places[place]) {
            locations->nodes[locations->count++] = node;
            places[place] = (uint32_t)locations->count;
        }
        locations->of_node[node] = places[place];
    }
    free(places);
    return 0;
}

void locations_free(struct locations *locations)
{
    free(locations->of_node);
    free(locations->nodes);
    *locations = (struct locations){0};
}

uint64_t location_address(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (at->class_ == QUT_TRACE_CLASS_LABEL || at->class_ == QUT_TRACE_CLASS_END)
        return 0;
    if (at->module == TRACE_NONE)
        return at->pc;
    const struct trace_module *module = &trace->modules[at->module];
    if (module->flags & QUT_TRACE_MODULE_JIT && at->pc >= module->start) // no file: it may be an address already
        return at->pc;
    return module->start + (at->pc - module->start_vaddr);
}
