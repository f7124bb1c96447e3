// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/names/by_hand.h"

#include <stdlib.h>
#include <string.h>

#include "qutc/input/image.h"

struct trace by_hand_trace(void)
{
    struct trace trace = {0};
    by_hand_node(&trace, TRACE_NONE, 0, 0);
    return trace;
}

void by_hand_free(struct trace *trace)
{
    free(trace->modules);
    free(trace->nodes);
    *trace = (struct trace){0};
}

uint32_t by_hand_module(struct trace *trace, const char *path, const char *file, uint32_t flags)
{
    struct trace_module module = {.path = path, .flags = flags, .unload_ns = UINT64_MAX};
    const struct input_image_options options = {.identity_only = true};
    struct input_image *image = NULL;
    if (file &&
        (input_image_open(file, NULL, 0, 0, &options, &image, NULL) != 0 || image->identity_kind != INPUT_BUILD_ID))
        abort();
    if (file) {
        module.build_id_bytes = image->identity_size;
        memcpy(module.build_id, image->identity, image->identity_size);
    }
    input_image_close(image);
    trace->modules = realloc(trace->modules, (trace->module_count + 1) * sizeof *trace->modules);
    if (!trace->modules)
        abort();
    trace->modules[trace->module_count] = module;
    return (uint32_t)trace->module_count++;
}

static uint32_t add(struct trace *trace, const struct trace_node *node)
{
    // In steps: some traces here have a million.
    if ((trace->node_count & (trace->node_count - 1)) == 0) {
        size_t capacity = trace->node_count ? 2 * trace->node_count : 1;
        trace->nodes = realloc(trace->nodes, capacity * sizeof *trace->nodes);
        if (!trace->nodes)
            abort();
    }
    trace->nodes[trace->node_count] = *node;
    return (uint32_t)trace->node_count++;
}

uint32_t by_hand_node(struct trace *trace, uint32_t module, uint64_t pc, unsigned class_)
{
    return add(trace, &(struct trace_node){.module = module,
                                           .pc = pc,
                                           .class_ = (uint8_t)class_,
                                           .kind = (uint8_t)(class_ << QUT_TRACE_CLASS_SHIFT),
                                           .depth = 1});
}

uint32_t by_hand_label(struct trace *trace, const char *label, unsigned class_)
{
    return add(trace, &(struct trace_node){.module = TRACE_NONE,
                                           .class_ = (uint8_t)class_,
                                           .kind = (uint8_t)(class_ << QUT_TRACE_CLASS_SHIFT),
                                           .depth = 1,
                                           .label = label});
}
