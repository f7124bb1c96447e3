// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/trace_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct piece {
    void *bytes;
    size_t size;
};

struct trace_memory {
    BASE_VECTOR(struct piece);
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
        base_array_free(memory->items[i].bytes, memory->items[i].size);
    base_vector_free(&memory->vector);
    free(memory);
}

// The index of a new, empty piece; SIZE_MAX: there is no memory.
static size_t add_piece(struct trace_memory *memory)
{
    struct piece *piece = BASE_ADD(memory);
    if (!piece)
        return SIZE_MAX;
    *piece = (struct piece){NULL, 0};
    return memory->count - 1;
}

void *trace_memory_take(struct trace_memory *memory, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, item_bytes, &bytes))
        return NULL;
    size_t piece = add_piece(memory);
    if (piece == SIZE_MAX)
        return NULL;
    // Large ones are tables by the numbers of nodes, of which a short recording has few.
    void *taken = base_array_sparse(bytes);
    if (!taken)
        return NULL;
    memory->items[piece] = (struct piece){taken, bytes};
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
    if (!vector->failed && vector->piece == SIZE_MAX)
        vector->piece = add_piece(vector->memory);
    vector->failed = vector->failed || vector->piece == SIZE_MAX ||
                     !base_vector_reserve_large(&vector->vector, more, vector->item_bytes);
    if (!vector->failed)
        vector->memory->items[vector->piece] = (struct piece){vector->items, vector->capacity * vector->item_bytes};
    return !vector->failed;
}

void trace_vector_free(struct trace_vector *vector)
{
    if (vector->piece != SIZE_MAX) {
        base_vector_free_large(&vector->vector, vector->item_bytes);
        vector->memory->items[vector->piece] = (struct piece){NULL, 0};
    }
    *vector = trace_vector(vector->memory, vector->item_bytes);
}
