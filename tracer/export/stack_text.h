// SPDX-License-Identifier: Apache-2.0
// Stacks as text, one after the other: what a stack has in common with the one before is not written again, only
// copied.
#ifndef TRACER_EXPORT_STACK_TEXT_H
#define TRACER_EXPORT_STACK_TEXT_H

#include <stdbool.h>

#include "tracer/export/export.h"
#include "tracer/export/sink.h"

struct stack_text {
    const struct trace *trace;
    // Writes a node's text.
    void (*write)(void *context, uint32_t node, struct sink *sink);
    void *context;
    bool innermost_first;
    struct sink *piece; // of one node
    uint32_t *nodes;    // of the stack that is there, outermost first
    size_t *ends;       // bytes of text up to and with nodes[i]
    size_t count, room;
    uint32_t *wanted; // of the next one
    char *bytes;      // outermost first: from the beginning; else up to the end
    size_t bytes_room;
};

// Of trace, write, context and innermost_first, which are set, with zeroes. False: no memory.
bool stack_text_begin(struct stack_text *text);
// The text of all frames of `node`. NULL: no memory. Stays until the next call.
const char *stack_text_of(struct stack_text *text, uint32_t node, size_t *size);
void stack_text_free(struct stack_text *text);

#endif
