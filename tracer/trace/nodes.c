// SPDX-License-Identifier: Apache-2.0
// The tree of frames, numbered so that parents come first. A node whose way to the root is broken (its parent is not
// there, or is its own descendant) hangs from a node that says so: what is below it is kept.
#include <qut/frame.h>

#include "base/system_calls.h"
#include "tracer/trace/inside.h"

enum { CALL_MOST = 0xffff }; // no architecture has such numbers
enum { END_KIND = QUT_TRACE_CLASS_END << QUT_TRACE_CLASS_SHIFT, PATH_MARK = 0xffffffff };

static uint64_t word_parent(uint64_t word)
{
    return word >> QUT_TRACE_PARENT_SHIFT;
}
static uint64_t word_code(uint64_t word)
{
    return word >> QUT_TRACE_KIND_BITS & (((uint64_t)1 << QUT_TRACE_CODE_BITS) - 1);
}
static unsigned word_kind(uint64_t word)
{
    return word & ((1u << QUT_TRACE_KIND_BITS) - 1);
}

static struct trace_node *add_node(struct node_map *map, uint32_t parent, unsigned kind)
{
    struct trace_node *node = trace_vector_add(&map->nodes);
    if (!node)
        return NULL;
    const struct trace_node *above = (const struct trace_node *)map->nodes.items + parent;
    *node = (struct trace_node){.parent = parent,
                                .kind = (uint8_t)kind,
                                .class_ = (uint8_t)(kind >> QUT_TRACE_CLASS_SHIFT),
                                .depth = above->depth == UINT16_MAX ? UINT16_MAX : (uint16_t)(above->depth + 1),
                                .module = TRACE_NONE};
    return node;
}

static uint32_t last_index(const struct node_map *map)
{
    return (uint32_t)(map->nodes.count - 1);
}

static bool need_damaged(struct node_map *map)
{
    map->damaged_count++;
    if (map->damaged)
        return true;
    struct trace_node *node = add_node(map, 0, END_KIND);
    if (!node)
        return false;
    node->label = "[damaged]";
    map->damaged = last_index(map);
    return true;
}

uint32_t trace_node_index(struct node_map *map, uint64_t id)
{
    if (id < map->capacity && (id == 0 || map->index[id]))
        return map->index[id];
    return need_damaged(map) ? map->damaged : UINT32_MAX;
}

static const char *end_label(struct image *image, uint64_t code)
{
    uint32_t reason = (uint32_t)(code & 0xff) - 1;
    uint32_t refusal = (uint32_t)(code >> 8);
    char *label =
        refusal ? trace_memory_text(image->memory, "[%s: %s]", qut_end_reason_name(reason), qut_refusal_name(refusal))
                : trace_memory_text(image->memory, "[%s]", qut_end_reason_name(reason));
    image->no_memory |= !label;
    return label ? label : "";
}

static const char *kernel_label(struct image *image, uint64_t code)
{
    const char *call =
        code >= QUT_TRACE_KERNEL_CALLS ? base_system_call(image->header.arch, code - QUT_TRACE_KERNEL_CALLS) : NULL;
    if (!call) {
        switch (code) {
        case QUT_TRACE_KERNEL_OTHER: return "[kernel]";
        case QUT_TRACE_KERNEL_FAULT: return "[kernel] page fault";
        case QUT_TRACE_KERNEL_OWN: return "[qut] ticks";
        case QUT_TRACE_KERNEL_CALL: return "[kernel] system call";
        default: break;
        }
    }
    char *label = call ? trace_memory_text(image->memory, "[kernel] %s", call)
                       : trace_memory_text(image->memory, "[kernel] system call %llu",
                                           (unsigned long long)(code - QUT_TRACE_KERNEL_CALLS));
    image->no_memory |= !label;
    return label ? label : "";
}

static void place_at(struct trace_node *node, const struct places *places, uint32_t module, uint64_t offset)
{
    node->module = module;
    node->pc = places->modules[module].start_vaddr + offset;
}

static bool fill_address(struct image *image, const struct places *places, struct trace_node *node, uint64_t code)
{
    // Of DEX: a method that is interpreted, by its description, has a name like code that was made. The description may
    // lie in a mapped file, too: OpenJDK has an archive of its classes.
    static const enum place_kind kinds[] = {
        [QUT_TRACE_CLASS_RAW] = PLACE_ANY, [QUT_TRACE_CLASS_JIT] = PLACE_JIT, [QUT_TRACE_CLASS_DEX] = PLACE_JIT};
    if (code >= image->raw_capacity || !image->raw[code])
        return false;
    node->pc = image->raw[code];
    uint32_t module = trace_place_of_address(places, kinds[node->class_], node->pc);
    if (module == TRACE_NONE && node->class_ == QUT_TRACE_CLASS_DEX)
        module = trace_place_of_address(places, PLACE_FILE, node->pc);
    if (module != TRACE_NONE)
        place_at(node, places, module, node->pc - places->modules[module].start);
    return true;
}

// False: what the node says is not sound.
static bool fill_node(struct image *image, const struct places *places, struct trace_node *node, uint64_t code)
{
    switch (node->class_) {
    case QUT_TRACE_CLASS_CODE:
    case QUT_TRACE_CLASS_SIGNAL: {
        node->pc = code;
        uint32_t module = trace_place_of_code(places, code);
        if (module == TRACE_NONE)
            return false;
        place_at(node, places, module, code - places->modules[module].code_base);
        return true;
    }
    case QUT_TRACE_CLASS_RAW:
    case QUT_TRACE_CLASS_JIT:
    case QUT_TRACE_CLASS_DEX: return fill_address(image, places, node, code);
    case QUT_TRACE_CLASS_LABEL:
        node->label = trace_image_string(image, code);
        return code == 0 || *node->label; // 0 is the empty string
    case QUT_TRACE_CLASS_END:
        node->label = end_label(image, code);
        node->pc = code;
        return true;
    case QUT_TRACE_CLASS_KERNEL:
        if (code > QUT_TRACE_KERNEL_OWN && (code < QUT_TRACE_KERNEL_CALLS || code > QUT_TRACE_KERNEL_CALLS + CALL_MOST))
            return false;
        node->label = kernel_label(image, code);
        node->pc = code;
        return true;
    default: return false;
    }
}

// Numbers a node, its parents first. `path` has room for all ids.
static bool number(struct image *image, struct node_map *map, const struct places *places, uint32_t *path, size_t id)
{
    size_t depth = 0;
    uint64_t at = id;
    // Up to what is numbered, the root, or something broken.
    while (at && at < map->capacity && !map->index[at] && image->nodes[at]) {
        map->index[at] = PATH_MARK;
        path[depth++] = (uint32_t)at;
        at = word_parent(image->nodes[at]);
    }
    uint32_t parent = 0;
    if (at && at < map->capacity && map->index[at] && map->index[at] != PATH_MARK)
        parent = map->index[at];
    else if (at) {
        if (!need_damaged(map))
            return false;
        parent = map->damaged;
    }
    while (depth-- > 0) {
        uint64_t word = image->nodes[path[depth]];
        struct trace_node *node = add_node(map, parent, word_kind(word));
        if (!node)
            return false;
        if (!fill_node(image, places, node, word_code(word))) {
            map->damaged_count++;
            if (node->class_ >= QUT_TRACE_CLASS_COUNT || node->class_ == QUT_TRACE_CLASS_LABEL ||
                node->class_ == QUT_TRACE_CLASS_KERNEL) {
                node->kind = END_KIND;
                node->class_ = QUT_TRACE_CLASS_END;
                node->label = "[damaged]";
            }
        }
        map->index[path[depth]] = parent = last_index(map);
    }
    return true;
}

int trace_build_nodes(struct image *image, const struct places *places, struct node_map *map, struct base_error *error)
{
    const uint32_t *ids = image->node_ids.count ? image->node_ids.items : NULL;
    size_t count = image->node_ids.count, id_count = ids ? count : image->node_capacity;
    for (size_t id = 1; !ids && id < image->node_capacity; id++)
        count += image->nodes[id] != 0;
    *map = (struct node_map){.index = trace_memory_take(image->memory, image->node_capacity, sizeof *map->index),
                             .capacity = image->node_capacity,
                             .nodes = trace_vector(image->memory, sizeof(struct trace_node))};
    struct trace_vector path = trace_vector(image->memory, sizeof(uint32_t));
    bool made = map->index && trace_vector_reserve(&map->nodes, count + 2) && trace_vector_reserve(&path, count + 1);
    if (made) {
        struct trace_node *root = trace_vector_add(&map->nodes);
        *root = (struct trace_node){.kind = END_KIND, .class_ = QUT_TRACE_CLASS_END, .module = TRACE_NONE};
    }
    for (size_t i = 0; made && i < id_count; i++) {
        const size_t id = ids ? ids[i] : i;
        if (id && image->nodes[id] && !map->index[id])
            made = number(image, map, places, path.items, id);
    }
    trace_vector_free(&path);
    if (!made)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu nodes", count);
    return 0;
}
