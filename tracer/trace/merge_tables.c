// SPDX-License-Identifier: Apache-2.0
// What several processes have in common: texts, modules, nodes.
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/merge.h"

// ---- tables

uint64_t merge_hash(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static bool grow(struct merge_table *table)
{
    size_t place_count = table->place_count ? table->place_count * 2 : 256;
    uint32_t *places = calloc(place_count, sizeof *places);
    uint64_t *hashes = reallocarray(table->hashes, place_count / 2, sizeof *hashes);
    if (hashes)
        table->hashes = hashes;
    if (!places || !hashes) {
        free(places);
        return false;
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t place = hashes[i] & (place_count - 1);
        while (places[place])
            place = (place + 1) & (place_count - 1);
        places[place] = (uint32_t)i + 1;
    }
    free(table->places);
    table->places = places;
    table->place_count = place_count;
    return true;
}

uint32_t merge_find(struct merge_table *table, uint64_t hash, merge_equal *equal, const void *context, const void *key,
                    uint32_t **place)
{
    *place = NULL;
    if (table->count >= TRACE_NONE - 1 || (table->count * 2 >= table->place_count && !grow(table)))
        return TRACE_NONE;
    size_t at = hash & (table->place_count - 1);
    for (; table->places[at]; at = (at + 1) & (table->place_count - 1)) {
        uint32_t index = table->places[at] - 1;
        if (table->hashes[index] == hash && equal(context, index, key))
            return index;
    }
    *place = &table->places[at];
    return TRACE_NONE;
}

void merge_put(struct merge_table *table, uint32_t *place, uint64_t hash)
{
    table->hashes[table->count++] = hash;
    *place = (uint32_t)table->count;
}

void merge_table_free(struct merge_table *table)
{
    free(table->places);
    free(table->hashes);
    *table = (struct merge_table){0};
}

// ---- texts

static bool text_equal(const void *context, uint32_t index, const void *key)
{
    const struct merger *merger = context;
    return strcmp(((const char **)merger->texts.items)[index], key) == 0;
}

const char *merge_text(struct merger *merger, const char *text)
{
    if (!text)
        return NULL;
    uint64_t hash = 1;
    size_t bytes = strlen(text) + 1;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    hash = merge_hash(hash, bytes);
    uint32_t *place, index = merge_find(&merger->text_table, hash, text_equal, merger, text, &place);
    if (index != TRACE_NONE)
        return ((const char **)merger->texts.items)[index];
    char *copy = place ? trace_memory_take(merger->memory, bytes, 1) : NULL;
    const char **item = copy ? trace_vector_add(&merger->texts) : NULL;
    if (!item)
        return NULL;
    merge_put(&merger->text_table, place, hash);
    return *item = memcpy(copy, text, bytes);
}

// ---- modules

// A file's module is the same in all processes that have that file, wherever it is there. Without a build-id nobody
// knows whether it is the same file; but then nobody knows so of one process's either: its path decides who names it.
static bool module_equal(const void *context, uint32_t index, const void *key)
{
    const struct merger *merger = context;
    const struct trace_module *left = (const struct trace_module *)merger->modules.items + index, *right = key;
    return left->path == right->path && left->flags == right->flags && left->start_vaddr == right->start_vaddr &&
           left->code_bytes == right->code_bytes && left->build_id_bytes == right->build_id_bytes &&
           memcmp(left->build_id, right->build_id, left->build_id_bytes) == 0;
}

static uint32_t put_module(struct merger *merger, struct trace_module module)
{
    uint32_t *place = NULL, index = TRACE_NONE;
    uint64_t hash = merge_hash((uintptr_t)module.path, module.start_vaddr);
    hash = merge_hash(merge_hash(hash, module.code_bytes), module.build_id[0] | (uint64_t)module.build_id[1] << 8);
    // Code that was made at run time is each process's own.
    if (module.flags & QUT_TRACE_MODULE_JIT)
        hash = merge_hash(hash, merger->module_table.count);
    else
        index = merge_find(&merger->module_table, hash, module_equal, merger, &module, &place);
    if (index != TRACE_NONE) {
        struct trace_module *known = (struct trace_module *)merger->modules.items + index;
        if (module.load_ns < known->load_ns)
            known->load_ns = module.load_ns;
        if (module.unload_ns > known->unload_ns)
            known->unload_ns = module.unload_ns;
        return index;
    }
    if (!place)
        merge_find(&merger->module_table, hash, module_equal, merger, &module, &place);
    struct trace_module *item = place ? trace_vector_add(&merger->modules) : NULL;
    if (!item)
        return TRACE_NONE;
    *item = module;
    merge_put(&merger->module_table, place, hash);
    return (uint32_t)merger->modules.count - 1;
}

static bool need(uint32_t **map, size_t *room, size_t count)
{
    if (count <= *room)
        return true;
    uint32_t *grown = reallocarray(*map, count, sizeof *grown);
    if (!grown)
        return false;
    *map = grown;
    *room = count;
    return true;
}

bool merge_modules(struct merger *merger, const struct trace *part)
{
    if (!need(&merger->module_map, &merger->module_room, part->module_count + 1))
        return false;
    for (size_t i = 0; i < part->module_count; i++) {
        struct trace_module module = part->modules[i];
        module.path = merge_text(merger, module.path);
        if (!module.path)
            return false;
        merger->module_map[i] = put_module(merger, module);
        if (merger->module_map[i] == TRACE_NONE)
            return false;
    }
    return true;
}

// ---- nodes

static bool node_equal(const void *context, uint32_t index, const void *key)
{
    const struct merger *merger = context;
    const struct trace_node *left = (const struct trace_node *)merger->nodes.items + index, *right = key;
    return left->parent == right->parent && left->pc == right->pc && left->module == right->module &&
           left->kind == right->kind && left->label == right->label;
}

static uint32_t put_node(struct merger *merger, const struct trace_node *node)
{
    uint64_t hash = merge_hash((uint64_t)node->parent << 32 | node->module, node->pc);
    hash = merge_hash(merge_hash(hash, node->kind), (uintptr_t)node->label);
    uint32_t *place, index = merge_find(&merger->node_table, hash, node_equal, merger, node, &place);
    if (index != TRACE_NONE)
        return index;
    struct trace_node *item = place ? trace_vector_add(&merger->nodes) : NULL;
    if (!item)
        return TRACE_NONE;
    *item = *node;
    merge_put(&merger->node_table, place, hash);
    return (uint32_t)merger->nodes.count - 1;
}

// A parent stands before its children: it is known when they come.
bool merge_nodes(struct merger *merger, const struct trace *part)
{
    if (!need(&merger->node_map, &merger->node_room, part->node_count + 1))
        return false;
    merger->node_map[0] = 0;
    for (size_t i = 1; i < part->node_count; i++) {
        struct trace_node node = part->nodes[i];
        node.parent = merger->node_map[node.parent];
        if (node.module != TRACE_NONE)
            node.module = merger->module_map[node.module];
        if (node.label && !(node.label = merge_text(merger, node.label)))
            return false;
        merger->node_map[i] = put_node(merger, &node);
        if (merger->node_map[i] == TRACE_NONE)
            return false;
    }
    return true;
}
