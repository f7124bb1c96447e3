// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/stack_text.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/export/sink/sink.h"

enum { BYTES_FIRST = 16384 };

bool export_stack_text_begin(struct stack_text *text)
{
    text->piece = sink_in_memory();
    text->bytes = malloc(BYTES_FIRST);
    text->bytes_room = text->bytes ? BYTES_FIRST : 0;
    return text->piece && text->bytes;
}

void export_stack_text_free(struct stack_text *text)
{
    if (text->piece)
        sink_close(text->piece, false, NULL);
    base_vector_free(&text->vector);
    base_vector_free(&text->wanted.vector);
    free(text->bytes);
}

static size_t used_bytes(const struct stack_text *text)
{
    return text->count ? text->items[text->count - 1].end : 0;
}

static bool make_bytes(struct stack_text *text, size_t size)
{
    size_t used = used_bytes(text), room = text->bytes_room;
    if (size <= room - used)
        return true;
    while (room - used < size)
        room *= 2;
    char *bytes = malloc(room);
    if (!bytes)
        return false;
    if (text->innermost_first)
        memcpy(bytes + room - used, text->bytes + text->bytes_room - used, used);
    else
        memcpy(bytes, text->bytes, used);
    free(text->bytes);
    text->bytes = bytes;
    text->bytes_room = room;
    return true;
}

static bool push(struct stack_text *text, uint32_t node)
{
    sink_empty(text->piece);
    text->write(text->context, node, text->piece);
    size_t size;
    const uint8_t *piece = sink_memory(text->piece, &size);
    if (sink_failed(text->piece) || !make_bytes(text, size))
        return false;
    size_t used = used_bytes(text);
    memcpy(text->innermost_first ? text->bytes + text->bytes_room - used - size : text->bytes + used, piece, size);
    struct stack_text_frame *frame = BASE_ADD(text);
    if (frame)
        *frame = (struct stack_text_frame){node, used + size};
    return frame;
}

// The stack's innermost frame that `node` has too stays, with all that is outside of it. Nodes are unique: where one
// stands at the same depth, so does all outside of it. What is to be pushed comes to wanted.
static bool find_common(struct stack_text *text, uint32_t node)
{
    size_t depth = text->trace->nodes[node].depth;
    if (depth == UINT16_MAX) { // or deeper
        depth = 0;
        for (uint32_t at = node; at; at = text->trace->nodes[at].parent)
            depth++;
    }
    text->wanted.count = 0;
    if (!BASE_RESERVE(&text->wanted, depth))
        return false;
    while (depth && (depth > text->count || text->items[depth - 1].node != node)) {
        *BASE_ADD(&text->wanted) = node;
        node = text->trace->nodes[node].parent;
        depth--;
    }
    text->count = depth;
    return true;
}

const char *export_stack_text_of(struct stack_text *text, uint32_t node, size_t *size)
{
    if (!find_common(text, node))
        return NULL;
    while (text->wanted.count)
        if (!push(text, text->wanted.items[--text->wanted.count]))
            return NULL;
    *size = used_bytes(text);
    return text->innermost_first ? text->bytes + text->bytes_room - *size : text->bytes;
}
