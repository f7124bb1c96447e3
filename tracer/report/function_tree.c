// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/function_tree.h"

#include <stdlib.h>

#include "base/hash_index.h"
#include "base/vector.h"

struct maker {
    BASE_VECTOR(struct report_frame);
    struct base_hash_index index; // by parent, function and class
};

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
static uint32_t child_of(struct maker *maker, uint32_t parent, const struct name *name, const struct trace_node *node)
{
    uint64_t hash = base_hash_word(base_hash_word(0, (uint64_t)parent << 32 | name->id), node->class_);
    uint32_t child;
    for (uint32_t step = 0; (child = base_hash_next(&maker->index, hash, &step)) != BASE_HASH_NONE;) {
        const struct report_frame *frame = &maker->items[child];
        if (frame->parent == parent && frame->function == name->id && frame->class_ == node->class_)
            break;
    }
    if (child == BASE_HASH_NONE) {
        child = (uint32_t)maker->count;
        struct report_frame *added = BASE_ADD(maker);
        if (!added || !base_hash_add(&maker->index, hash, child))
            return 0;
        *added = (struct report_frame){.parent = parent, .function = name->id, .class_ = node->class_};
    }
    struct report_frame *frame = &maker->items[child];
    see_line(frame, name->line);
    if (name->is_inlined)
        frame->flags |= REPORT_FRAME_INLINED;
    if (!name->is_known)
        frame->flags |= REPORT_FRAME_UNKNOWN;
    if (node->kind & QUT_TRACE_NODE_GUESSED)
        frame->flags |= REPORT_FRAME_GUESSED;
    return child;
}

int report_frames_make(struct report_frames *frames, const struct trace *trace, const struct names *names)
{
    struct maker maker = {0};
    uint32_t *of_node = calloc(trace->node_count ? trace->node_count : 1, sizeof *of_node);
    uint32_t *line_of_node = calloc(trace->node_count ? trace->node_count : 1, sizeof *line_of_node);
    struct report_frame *root = BASE_ADD(&maker);
    bool is_good = of_node && line_of_node && root;
    if (root)
        *root = (struct report_frame){0};
    for (uint32_t node = 1; is_good && node < trace->node_count; node++) {
        uint32_t frame = of_node[trace->nodes[node].parent];
        for (size_t i = names_count(names, node); i-- > 0 && is_good;) {
            frame = child_of(&maker, frame, names_at(names, node, i), &trace->nodes[node]);
            is_good = frame != 0;
        }
        of_node[node] = frame;
        if (names_count(names, node))
            line_of_node[node] = names_at(names, node, 0)->line;
    }
    base_hash_free(&maker.index);
    *frames = (struct report_frames){maker.items, maker.count, of_node, line_of_node};
    if (!is_good)
        report_frames_free(frames);
    return is_good ? 0 : -1;
}

void report_frames_free(struct report_frames *frames)
{
    free(frames->frames);
    free(frames->of_node);
    free(frames->line_of_node);
    *frames = (struct report_frames){0};
}
