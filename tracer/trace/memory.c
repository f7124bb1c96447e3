// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/base/array.h"

struct piece {
    void *bytes;
    size_t size;
};

struct trace_memory {
    struct piece *pieces;
    size_t count, room;
};

struct trace_memory *trace_memory_new(void)
{
    return calloc(1, sizeof(struct trace_memory));
}

void trace_memory_free(struct trace_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->count; i++)
        qutc_array_free(memory->pieces[i].bytes, memory->pieces[i].size);
    free(memory->pieces);
    free(memory);
}

// The index of a new, empty piece; SIZE_MAX: there is no memory.
static size_t add_piece(struct trace_memory *memory)
{
    if (memory->count == memory->room) {
        size_t room = memory->room ? memory->room * 2 : 64;
        struct piece *pieces = qutc_array_of(memory->pieces, room, sizeof *pieces);
        if (!pieces)
            return SIZE_MAX;
        memory->pieces = pieces;
        memory->room = room;
    }
    memory->pieces[memory->count] = (struct piece){NULL, 0};
    return memory->count++;
}

void *trace_memory_take(struct trace_memory *memory, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, item_bytes, &bytes))
        return NULL;
    size_t piece = add_piece(memory);
    if (piece == SIZE_MAX)
        return NULL;
    // Large ones are fresh mappings, which are zeros: not to be touched before they are used. What is smaller than
    // those is from malloc's family.
    void *taken = bytes < (size_t)2 << 20 ? calloc(1, bytes) : qutc_array_resize(NULL, 0, bytes);
    if (!taken)
        return NULL;
    memory->pieces[piece] = (struct piece){taken, bytes};
    return taken;
}

char *trace_memory_text(struct trace_memory *memory, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[512];
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t kept = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    char *copy = trace_memory_take(memory, kept + 1, 1);
    if (copy)
        memcpy(copy, text, kept);
    return copy;
}

struct trace_vector trace_vector(struct trace_memory *memory, size_t item_bytes)
{
    return (struct trace_vector){.memory = memory, .item_bytes = item_bytes, .piece = SIZE_MAX};
}

bool trace_vector_reserve(struct trace_vector *vector, size_t more)
{
    size_t wanted, bytes;
    if (vector->failed)
        return false;
    if (vector->piece == SIZE_MAX)
        vector->piece = add_piece(vector->memory);
    if (vector->piece == SIZE_MAX || __builtin_add_overflow(vector->count, more, &wanted)) {
        vector->failed = true;
        return false;
    }
    if (wanted <= vector->room)
        return true;
    size_t room = vector->room ? vector->room * 2 : 16;
    if (room < wanted)
        room = wanted;
    if (__builtin_mul_overflow(room, vector->item_bytes, &bytes)) {
        vector->failed = true;
        return false;
    }
    struct piece *piece = &vector->memory->pieces[vector->piece];
    void *items = qutc_array_resize(piece->bytes, piece->size, bytes);
    if (!items) {
        vector->failed = true;
        return false;
    }
    *piece = (struct piece){items, bytes};
    vector->items = items;
    vector->room = room;
    return true;
}

void trace_vector_free(struct trace_vector *vector)
{
    if (vector->piece != SIZE_MAX) {
        struct piece *piece = &vector->memory->pieces[vector->piece];
        qutc_array_free(piece->bytes, piece->size);
        *piece = (struct piece){NULL, 0};
    }
    *vector = trace_vector(vector->memory, vector->item_bytes);
}
