// SPDX-License-Identifier: Apache-2.0
// What a trace stands in: pieces of memory that are let go of together.
#ifndef TRACER_TRACE_TRACE_MEMORY_H
#define TRACER_TRACE_TRACE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct trace_memory;

struct trace_memory *trace_memory_new(void); // NULL: there is none
void trace_memory_free(struct trace_memory *memory);

// `count` items, all zeros; NULL: there is no memory. A count of 0 gives a place all the same.
void *trace_memory_take(struct trace_memory *memory, size_t count, size_t item_bytes);
// Text by printf's rules; NULL: there is no memory.
char *trace_memory_text(struct trace_memory *memory, const char *format, ...) __attribute__((format(printf, 2, 3)));

// An array that grows at its end. Its items are the memory's: freed with it.
struct trace_vector {
    struct trace_memory *memory;
    BASE_VECTOR(void);
    size_t item_bytes;
    size_t piece; // which one of the memory's
    bool failed;  // there was no memory for more
};
struct trace_vector trace_vector(struct trace_memory *memory, size_t item_bytes);
// Room for `more` items behind the others; false: there is no memory.
bool trace_vector_reserve(struct trace_vector *vector, size_t more);
// A place for one more item, not filled; NULL: there is no memory.
static inline void *trace_vector_add(struct trace_vector *vector)
{
    if (vector->count == vector->capacity && !trace_vector_reserve(vector, 1))
        return NULL;
    return (char *)vector->items + vector->count++ * vector->item_bytes;
}
void trace_vector_free(struct trace_vector *vector); // before the memory is

#endif
