// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/stack_text.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/export/sink_inside.h"

enum { ROOM_FIRST = 256, BYTES_FIRST = 16384 };

bool stack_text_begin(struct stack_text *text)
{
    text->piece = sink_in_memory();
    text->bytes = malloc(BYTES_FIRST);
    text->bytes_room = text->bytes ? BYTES_FIRST : 0;
    return text->piece && text->bytes;
}

void stack_text_free(struct stack_text *text)
{
    if (text->piece)
        sink_close(text->piece, false, NULL);
    free(text->nodes);
    free(text->ends);
    free(text->wanted);
    free(text->bytes);
}

static bool make_room(struct stack_text *text, size_t count)
{
    if (count <= text->room)
        return true;
    size_t room = count < ROOM_FIRST ? ROOM_FIRST : count * 2;
    uint32_t *nodes = reallocarray(text->nodes, room, sizeof *nodes);
    text->nodes = nodes ? nodes : text->nodes;
    size_t *ends = reallocarray(text->ends, room, sizeof *ends);
    text->ends = ends ? ends : text->ends;
    uint32_t *wanted = reallocarray(text->wanted, room, sizeof *wanted);
    text->wanted = wanted ? wanted : text->wanted;
    text->room = nodes && ends && wanted ? room : text->room;
    return nodes && ends && wanted;
}

static size_t used_bytes(const struct stack_text *text)
{
    return text->count ? text->ends[text->count - 1] : 0;
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
    text->piece->used = 0;
    text->write(text->context, node, text->piece);
    size_t size;
    const uint8_t *piece = sink_memory(text->piece, &size);
    if (sink_failed(text->piece) || !make_bytes(text, size))
        return false;
    size_t used = used_bytes(text);
    memcpy(text->innermost_first ? text->bytes + text->bytes_room - used - size : text->bytes + used, piece, size);
    text->nodes[text->count] = node;
    text->ends[text->count++] = used + size;
    return true;
}

// The stack's innermost frame that `node` has too stays, with all that is outside of it. Nodes are unique: where one
// stands at the same depth, so does all outside of it. Returns how many frames are to be pushed; they are in wanted,
// innermost first.
static bool find_common(struct stack_text *text, uint32_t node, size_t *missing)
{
    size_t depth = text->trace->nodes[node].depth;
    if (depth == UINT16_MAX) { // or deeper
        depth = 0;
        for (uint32_t at = node; at; at = text->trace->nodes[at].parent)
            depth++;
    }
    if (!make_room(text, depth))
        return false;
    size_t count = 0;
    while (depth && (depth > text->count || text->nodes[depth - 1] != node)) {
        text->wanted[count++] = node;
        node = text->trace->nodes[node].parent;
        depth--;
    }
    text->count = depth;
    *missing = count;
    return true;
}

const char *stack_text_of(struct stack_text *text, uint32_t node, size_t *size)
{
    size_t missing;
    if (!find_common(text, node, &missing))
        return NULL;
    while (missing)
        if (!push(text, text->wanted[--missing]))
            return NULL;
    *size = used_bytes(text);
    return text->innermost_first ? text->bytes + text->bytes_room - *size : text->bytes;
}
