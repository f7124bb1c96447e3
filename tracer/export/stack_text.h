// SPDX-License-Identifier: Apache-2.0
// Stacks as text, one after the other: what a stack has in common with the one before is not written again, only
// copied.
#ifndef TRACER_EXPORT_STACK_TEXT_H
#define TRACER_EXPORT_STACK_TEXT_H

#include <stdbool.h>

#include "base/vector.h"
#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"

struct stack_text_frame {
    uint32_t node;
    size_t end; // bytes of text up to and with this
};

struct stack_text {
    const struct trace *trace;
    // Writes a node's text.
    void (*write)(void *context, uint32_t node, struct sink *sink);
    void *context;
    bool innermost_first;
    struct sink *piece;                   // of one node
    BASE_VECTOR(struct stack_text_frame); // of the stack that is there, outermost first
    BASE_VECTOR(uint32_t) wanted;         // nodes of the next one, innermost first
    char *bytes;                          // outermost first: from the beginning; else up to the end
    size_t bytes_room;
};

// Of trace, write, context and innermost_first, which are set, with zeroes. False: no memory.
bool export_stack_text_begin(struct stack_text *text);
// The text of all frames of `node`. NULL: no memory. Stays until the next call.
const char *export_stack_text_of(struct stack_text *text, uint32_t node, size_t *size);
void export_stack_text_free(struct stack_text *text);

#endif
