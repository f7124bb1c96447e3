// SPDX-License-Identifier: Apache-2.0
// Which nodes are stacks, which frames they are of, and where a function stands in one stack more than once.
#include <stdlib.h>

#include "formats/qut_table_name_inline.h"
#include "tracer/tables/inside.h"

// Marks in used[] all nodes that samples' stacks go through.
static void find_used(const struct trace *trace, uint8_t *used)
{
    for (size_t i = 0; i < trace->sample_count; i++) {
        uint32_t node = trace->samples[i].node;
        if (!node)
            continue;
        bool is_new = !used[node];
        used[node] = TABLES_ENDS;
        while (is_new && (node = trace->nodes[node].parent) != 0) {
            is_new = !used[node];
            used[node] = is_new ? TABLES_GOES_THROUGH : used[node];
        }
    }
}

static uint64_t hash_of(const struct tables *tables, uint32_t node, uint32_t inlined)
{
    const struct trace_node *at = &tables->selection.trace.nodes[node];
    const uint64_t hash = base_hash_word(base_hash_word(0, at->pc), (uint64_t)at->module << 32 | inlined);
    return base_hash_word(hash, (uint64_t)at->class_ << 32 | names_at(tables->names, node, inlined)->id);
}

static bool is_same(const struct tables *tables, const struct tables_frame *frame, uint32_t node, uint32_t inlined)
{
    const struct trace_node *a = &tables->selection.trace.nodes[frame->node];
    const struct trace_node *b = &tables->selection.trace.nodes[node];
    const struct name *left = names_at(tables->names, frame->node, frame->inlined);
    const struct name *right = names_at(tables->names, node, inlined);
    return a->pc == b->pc && a->module == b->module && a->class_ == b->class_ && frame->inlined == inlined &&
           left->id == right->id && left->line == right->line;
}

static const char *build_id_of(struct tables *tables, const struct trace_module *module)
{
    char text[2 * QUT_TRACE_BUILD_ID_BYTES + 1];
    qut_hex(module->build_id, module->build_id_bytes, text);
    const uint32_t number = base_interner_add(&tables->texts, text);
    return tables->texts.has_failed ? NULL : base_interner_text(&tables->texts, number);
}

// The frame's number; BASE_HASH_NONE: no memory.
static uint32_t frame_of(struct tables *tables, uint32_t node, uint32_t inlined)
{
    const struct trace *trace = &tables->selection.trace;
    const uint64_t hash = hash_of(tables, node, inlined);
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&tables->frame_index, hash, &step)) != BASE_HASH_NONE;)
        if (is_same(tables, &tables->frames.items[found], node, inlined))
            return found;
    found = (uint32_t)tables->frames.count;
    const struct name *name = names_at(tables->names, node, inlined);
    const struct trace_module *module =
        trace->nodes[node].module == TRACE_NONE ? NULL : &trace->modules[trace->nodes[node].module];
    const struct tables_frame frame = {
        .node = node,
        .inlined = inlined,
        .function = tables_keep_text(tables, name->function),
        .module = tables_keep_text(tables, name->module),
        .path = module && !(module->flags & QUT_TRACE_MODULE_JIT && !(module->flags & QUT_TRACE_MODULE_LINES))
                    ? tables_keep_text(tables, trace_module_file(module))
                    : "",
        .build_id = module ? build_id_of(tables, module) : "",
        .file = tables_keep_text(tables, name->file)};
    struct tables_frame *place = BASE_ADD(&tables->frames);
    if (!place || !frame.function || !frame.module || !frame.path || !frame.build_id || !frame.file ||
        !base_hash_add(&tables->frame_index, hash, found))
        return BASE_HASH_NONE;
    *place = frame;
    return found;
}

static bool make_places(struct tables *tables, const uint8_t *used)
{
    const struct trace *trace = &tables->selection.trace;
    tables->first_place = calloc(trace->node_count + 1, sizeof *tables->first_place);
    if (!tables->first_place)
        return false;
    for (uint32_t node = 1; node < trace->node_count; node++)
        if (used[node]) {
            tables->first_place[node] = (uint32_t)tables->place_count;
            tables->place_count += tables_name_count(tables, node);
        }
    tables->places = calloc(tables->place_count + 1, sizeof *tables->places);
    if (!tables->places)
        return false;
    for (uint32_t node = 1; node < trace->node_count; node++)
        for (uint32_t i = 0; used[node] && i < tables_name_count(tables, node); i++) {
            const uint32_t frame = frame_of(tables, node, i);
            if (frame == BASE_HASH_NONE)
                return false;
            tables->places[tables->first_place[node] + i] = frame;
        }
    return true;
}

// Enters a node: its functions are open for all that hangs from it.
static void enter(struct tables *tables, uint32_t *open, uint32_t node)
{
    for (uint32_t i = tables_name_count(tables, node); i-- > 0;)
        if (open[names_at(tables->names, node, i)->id]++)
            tables->places[tables->first_place[node] + i] |= TABLES_REPEATED;
}

static void leave(struct tables *tables, uint32_t *open, uint32_t node)
{
    for (uint32_t i = tables_name_count(tables, node); i-- > 0;)
        open[names_at(tables->names, node, i)->id]--;
}

// Through the tree, without recursion of ours: it may be as deep as a program's.
static bool find_repeated(struct tables *tables, const uint8_t *used)
{
    const struct trace *trace = &tables->selection.trace;
    uint32_t *first_child = calloc(trace->node_count + 1, sizeof *first_child);
    uint32_t *next_sibling = calloc(trace->node_count + 1, sizeof *next_sibling);
    uint32_t *open = calloc(names_id_count(tables->names) + 1, sizeof *open);
    const bool is_good = first_child && next_sibling && open;
    for (uint32_t node = (uint32_t)trace->node_count; is_good && node-- > 1;)
        if (used[node]) {
            next_sibling[node] = first_child[trace->nodes[node].parent];
            first_child[trace->nodes[node].parent] = node;
        }
    for (uint32_t node = is_good ? first_child[0] : 0; node;) {
        enter(tables, open, node);
        if (first_child[node]) {
            node = first_child[node];
            continue;
        }
        leave(tables, open, node);
        while (!next_sibling[node] && (node = trace->nodes[node].parent) != 0)
            leave(tables, open, node);
        node = node ? next_sibling[node] : 0;
    }
    free(first_child);
    free(next_sibling);
    free(open);
    return is_good;
}

static bool count_rows(struct tables *tables, const uint8_t *used)
{
    const struct trace *trace = &tables->selection.trace;
    uint64_t *rows = calloc(trace->node_count + 1, sizeof *rows); // of a stack that ends in a node
    tables->first_row = calloc(tables->stack_count + 1, sizeof *tables->first_row);
    const bool is_good = rows && tables->first_row;
    for (uint32_t node = 1; is_good && node < trace->node_count; node++) // parents come before their children
        if (used[node])
            rows[node] = rows[trace->nodes[node].parent] + tables_name_count(tables, node);
    for (size_t i = 0; is_good && i < tables->stack_count; i++)
        tables->first_row[i + 1] = tables->first_row[i] + rows[tables->stacks[i].node];
    free(rows);
    return is_good;
}

bool tables_make_stacks(struct tables *tables)
{
    uint8_t *used = calloc(tables->selection.trace.node_count + 1, sizeof *used);
    if (used)
        find_used(&tables->selection.trace, used);
    const bool is_good = used && make_places(tables, used) && find_repeated(tables, used) &&
                         tables_number_stacks(tables, used) && count_rows(tables, used);
    free(used);
    return is_good;
}
