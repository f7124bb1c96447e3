// SPDX-License-Identifier: Apache-2.0
// Numbers of stacks: made of all that table frames says of their frames, so that a stack has the same one in every
// trace. Nodes that differ in nothing that is shown are one stack.
#include <stdlib.h>
#include <string.h>

#include "tracer/info/info.h"
#include "tracer/tables/inside.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return base_hash_bytes(base_hash_word(hash, strlen(text)), text, strlen(text));
}

static uint64_t hash_frame(const struct tables *tables, uint32_t number)
{
    const struct tables_frame *frame = &tables->frames.items[number];
    const struct name *name = names_at(tables->names, frame->node, frame->inlined);
    const struct trace_node *node = &tables->selection.trace.nodes[frame->node];
    uint64_t hash = base_hash_word(0, tables_frame_address(tables, number));
    hash = base_hash_word(hash, (uint64_t)name->line << 2 | (name->is_inlined ? 2u : 0u) | (name->is_known ? 1u : 0u));
    const char *const texts[] = {frame->function, frame->module, frame->path,
                                 frame->build_id, frame->file,   info_class_name(node->class_)};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash = hash_text(hash, texts[i]);
    return hash;
}

static uint64_t *hash_frames(const struct tables *tables)
{
    uint64_t *hashes = calloc(tables->frames.count + 1, sizeof *hashes);
    for (uint32_t i = 0; hashes && i < tables->frames.count; i++)
        hashes[i] = hash_frame(tables, i);
    return hashes;
}

// Of the stack that ends in a node: its own names, the outermost first, behind what it hangs from.
static uint64_t hash_node(const struct tables *tables, const uint64_t *frames, uint64_t hash, uint32_t node)
{
    for (uint32_t i = tables_name_count(tables, node); i-- > 0;) {
        const uint32_t place = tables->places[tables->first_place[node] + i];
        hash = base_hash_word(hash, frames[place & ~TABLES_REPEATED] ^ (place & TABLES_REPEATED));
    }
    return hash;
}

static int64_t number_of(uint64_t hash)
{
    const int64_t number = (int64_t)(hash & INT64_MAX);
    return number ? number : 1; // 0: no stack
}

// Nodes of samples as stacks, each number once, in rising order of nodes: those that have much in common are
// neighbours.
static bool find_stacks(struct tables *tables, const uint8_t *used, const uint64_t *hashes)
{
    const struct trace *trace = &tables->selection.trace;
    struct base_hash_index index = {0};
    bool is_good = true;
    for (uint32_t node = 1; is_good && node < trace->node_count; node++) {
        if (used[node] != TABLES_ENDS)
            continue;
        const int64_t number = number_of(hashes[node]);
        uint32_t found;
        for (uint32_t step = 0; (found = base_hash_next(&index, hashes[node], &step)) != BASE_HASH_NONE;)
            if (tables->stacks[found].number == number)
                break;
        if (found == BASE_HASH_NONE) {
            found = (uint32_t)tables->stack_count++;
            tables->stacks[found] = (struct tables_stack){.number = number, .node = node};
            is_good = base_hash_add(&index, hashes[node], found);
        }
        tables->stack_of[node] = found + 1;
    }
    base_hash_free(&index);
    return is_good;
}

static int by_number(const void *a, const void *b)
{
    const struct tables_stack_at *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

bool tables_number_stacks(struct tables *tables, const uint8_t *used)
{
    const struct trace *trace = &tables->selection.trace;
    uint64_t *frames = hash_frames(tables), *hashes = calloc(trace->node_count + 1, sizeof *hashes);
    tables->stacks = calloc(trace->node_count + 1, sizeof *tables->stacks);
    tables->stack_of = calloc(trace->node_count + 1, sizeof *tables->stack_of);
    bool is_good = frames && hashes && tables->stacks && tables->stack_of;
    for (uint32_t node = 1; is_good && node < trace->node_count; node++) // parents come before their children
        if (used[node])
            hashes[node] = hash_node(tables, frames, hashes[trace->nodes[node].parent], node);
    is_good = is_good && find_stacks(tables, used, hashes);
    free(frames);
    free(hashes);
    if (!is_good || !(tables->by_number = calloc(tables->stack_count + 1, sizeof *tables->by_number)))
        return false;
    for (uint32_t i = 0; i < tables->stack_count; i++)
        tables->by_number[i] = (struct tables_stack_at){.number = tables->stacks[i].number, .stack = i};
    qsort(tables->by_number, tables->stack_count, sizeof *tables->by_number, by_number);
    return true;
}
