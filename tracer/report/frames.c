// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/frames.h"

#include <stdlib.h>

// Frames by what makes them one: open addressing, at most half full; a slot is an index + 1.
struct frame_table {
    uint32_t *slots;
    size_t capacity; // a power of two
};

static size_t hash_of(uint32_t parent, uint32_t function, uint8_t class_)
{
    uint64_t hash = ((uint64_t)parent << 32 | function) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    hash = (hash + class_) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(hash ^ hash >> 32);
}

static uint32_t *slot_of(const struct frame_table *table, const struct report_frames *frames, uint32_t parent,
                         uint32_t function, uint8_t class_)
{
    for (size_t i = hash_of(parent, function, class_);; i++) {
        uint32_t *slot = &table->slots[i & (table->capacity - 1)];
        if (*slot == 0)
            return slot;
        const struct report_frame *frame = &frames->frames[*slot - 1];
        if (frame->parent == parent && frame->function == function && frame->class_ == class_)
            return slot;
    }
}

// Twice the size, for the table and for the frames, which are at most half as many.
static int grow(struct frame_table *table, struct report_frames *frames)
{
    size_t capacity = table->capacity ? table->capacity * 2 : 1024;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    struct report_frame *grown = realloc(frames->frames, capacity / 2 * sizeof *grown);
    if (grown)
        frames->frames = grown;
    if (!slots || !grown) {
        free(slots);
        return -1;
    }
    free(table->slots);
    *table = (struct frame_table){.slots = slots, .capacity = capacity};
    for (size_t i = 1; i < frames->count; i++) {
        const struct report_frame *frame = &frames->frames[i];
        *slot_of(table, frames, frame->parent, frame->function, frame->class_) = (uint32_t)i + 1;
    }
    return 0;
}

static void see_line(struct report_frame *frame, uint32_t line)
{
    if (line == 0)
        return;
    if (frame->line_low == 0 || line < frame->line_low)
        frame->line_low = line;
    if (line > frame->line_high)
        frame->line_high = line;
}

// The child of `parent` that `name` is. 0: no memory.
static uint32_t child_of(struct frame_table *table, struct report_frames *frames, uint32_t parent,
                         const struct name *name, const struct trace_node *node)
{
    if (frames->count >= table->capacity / 2 && grow(table, frames) != 0)
        return 0;
    uint32_t *slot = slot_of(table, frames, parent, name->id, node->class_);
    if (*slot == 0) {
        frames->frames[frames->count] =
            (struct report_frame){.parent = parent, .function = name->id, .class_ = node->class_};
        *slot = (uint32_t)++frames->count;
    }
    struct report_frame *frame = &frames->frames[*slot - 1];
    see_line(frame, name->line);
    if (name->is_inlined)
        frame->flags |= REPORT_FRAME_INLINED;
    if (!name->is_known)
        frame->flags |= REPORT_FRAME_UNKNOWN;
    if (node->kind & QUT_TRACE_NODE_GUESSED)
        frame->flags |= REPORT_FRAME_GUESSED;
    return *slot - 1;
}

int report_frames_make(struct report_frames *frames, const struct trace *trace, const struct names *names)
{
    *frames = (struct report_frames){0};
    struct frame_table table = {0};
    int result = -1;
    frames->of_node = calloc(trace->node_count ? trace->node_count : 1, sizeof *frames->of_node);
    if (!frames->of_node || grow(&table, frames) != 0)
        goto end;
    frames->frames[0] = (struct report_frame){0};
    frames->count = 1;
    for (uint32_t node = 1; node < trace->node_count; node++) {
        uint32_t frame = frames->of_node[trace->nodes[node].parent];
        for (size_t i = names_count(names, node); i-- > 0;) {
            frame = child_of(&table, frames, frame, names_at(names, node, i), &trace->nodes[node]);
            if (frame == 0)
                goto end;
        }
        frames->of_node[node] = frame;
    }
    result = 0;
end:
    free(table.slots);
    if (result != 0)
        report_frames_free(frames);
    return result;
}

void report_frames_free(struct report_frames *frames)
{
    free(frames->frames);
    free(frames->of_node);
    *frames = (struct report_frames){0};
}
