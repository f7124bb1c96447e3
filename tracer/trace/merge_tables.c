// SPDX-License-Identifier: Apache-2.0
// What several processes have in common: texts, modules, nodes.
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/merge.h"

// ---- texts

const char *trace_merge_text(struct merger *merger, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = strlen(text) + 1;
    uint64_t hash = base_hash_bytes(bytes, text, bytes);
    for (uint32_t step = 0, i; (i = base_hash_next(&merger->text_index, hash, &step)) != BASE_HASH_NONE;)
        if (strcmp(((const char **)merger->texts.items)[i], text) == 0)
            return ((const char **)merger->texts.items)[i];
    char *copy = trace_memory_take(merger->memory, bytes, 1);
    const char **item = copy ? trace_vector_add(&merger->texts) : NULL;
    if (!item || !base_hash_add(&merger->text_index, hash, (uint32_t)merger->texts.count - 1))
        return NULL;
    return *item = memcpy(copy, text, bytes);
}

// ---- modules

// A file's module is the same in all processes that have that file, wherever it is there. Without a build-id it is not
// known whether it is the same file; but neither is it of one process's: its path decides what names it. Hosts have the
// same file in other places: a build-id is enough there.
static bool is_known_by_path(const struct merger *merger, const struct trace_module *module)
{
    return !merger->is_of_recordings || !module->build_id_bytes;
}

static bool is_same_module(const struct merger *merger, const struct trace_module *left,
                           const struct trace_module *right)
{
    return (left->path == right->path || !is_known_by_path(merger, left)) && left->flags == right->flags &&
           left->start_vaddr == right->start_vaddr && left->code_bytes == right->code_bytes &&
           left->build_id_bytes == right->build_id_bytes &&
           memcmp(left->build_id, right->build_id, left->build_id_bytes) == 0;
}

static uint32_t find_module(const struct merger *merger, const struct trace_module *module, uint64_t hash)
{
    uint32_t index;
    for (uint32_t step = 0; (index = base_hash_next(&merger->module_index, hash, &step)) != BASE_HASH_NONE;)
        if (is_same_module(merger, (const struct trace_module *)merger->modules.items + index, module))
            break;
    return index;
}

static uint32_t put_module(struct merger *merger, struct trace_module module)
{
    // Code that was made at run time is each process's own.
    bool is_shared = !(module.flags & QUT_TRACE_MODULE_JIT);
    uint64_t hash = base_hash_word(is_known_by_path(merger, &module) ? (uintptr_t)module.path : 0, module.start_vaddr);
    hash = base_hash_bytes(hash, module.build_id, module.build_id_bytes);
    uint32_t index = is_shared ? find_module(merger, &module, hash) : BASE_HASH_NONE;
    if (index != BASE_HASH_NONE) {
        struct trace_module *known = (struct trace_module *)merger->modules.items + index;
        if (module.load_ns < known->load_ns)
            known->load_ns = module.load_ns;
        if (module.unload_ns > known->unload_ns)
            known->unload_ns = module.unload_ns;
        return index;
    }
    struct trace_module *item = trace_vector_add(&merger->modules);
    index = (uint32_t)merger->modules.count - 1;
    if (!item || (is_shared && !base_hash_add(&merger->module_index, hash, index)))
        return TRACE_NONE;
    *item = module;
    return index;
}

static bool put_levels(struct merger *merger, struct trace_module *module)
{
    if (module->level_count == 0)
        return true;
    struct trace_level *levels = trace_memory_take(merger->memory, module->level_count, sizeof *levels);
    for (uint32_t i = 0; levels && i < module->level_count; i++) {
        const struct trace_level *from = &module->levels[i];
        levels[i] = (struct trace_level){trace_merge_text(merger, from->function), trace_merge_text(merger, from->file),
                                         from->line};
        if (!levels[i].function || (from->file && !levels[i].file))
            return false;
    }
    module->levels = levels;
    return levels != NULL;
}

bool trace_merge_modules(struct merger *merger, const struct trace *part)
{
    if (!BASE_RESERVE(&merger->module_map, part->module_count + 1))
        return false;
    for (size_t i = 0; i < part->module_count; i++) {
        struct trace_module module = part->modules[i];
        module.path = trace_merge_text(merger, module.path);
        if (!module.path || !put_levels(merger, &module))
            return false;
        merger->module_map.items[i] = put_module(merger, module);
        if (merger->module_map.items[i] == TRACE_NONE)
            return false;
    }
    return true;
}

// ---- nodes

static bool is_same_node(const struct trace_node *left, const struct trace_node *right)
{
    return left->parent == right->parent && left->pc == right->pc && left->module == right->module &&
           left->kind == right->kind && left->label == right->label;
}

static uint32_t put_node(struct merger *merger, const struct trace_node *node)
{
    uint64_t hash = base_hash_word(base_hash_word(0, (uint64_t)node->parent << 32 | node->module), node->pc);
    hash = base_hash_word(base_hash_word(hash, node->kind), (uintptr_t)node->label);
    for (uint32_t step = 0, i; (i = base_hash_next(&merger->trace_node_index, hash, &step)) != BASE_HASH_NONE;)
        if (is_same_node((const struct trace_node *)merger->nodes.items + i, node))
            return i;
    struct trace_node *item = trace_vector_add(&merger->nodes);
    uint32_t index = (uint32_t)merger->nodes.count - 1;
    if (!item || !base_hash_add(&merger->trace_node_index, hash, index))
        return TRACE_NONE;
    *item = *node;
    return index;
}

// A parent stands before its children: it is known when they come.
bool trace_merge_nodes(struct merger *merger, const struct trace *part)
{
    if (!BASE_RESERVE(&merger->node_map, part->node_count + 1))
        return false;
    merger->node_map.items[0] = 0;
    for (size_t i = 1; i < part->node_count; i++) {
        struct trace_node node = part->nodes[i];
        node.parent = merger->node_map.items[node.parent];
        if (node.module != TRACE_NONE)
            node.module = merger->module_map.items[node.module];
        if (node.label && !(node.label = trace_merge_text(merger, node.label)))
            return false;
        merger->node_map.items[i] = put_node(merger, &node);
        if (merger->node_map.items[i] == TRACE_NONE)
            return false;
    }
    return true;
}
