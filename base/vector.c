// SPDX-License-Identifier: Apache-2.0
#include "base/vector.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"

enum { FIRST_CAPACITY = 16 };

bool base_vector_grow(struct base_vector *vector, size_t more, size_t item_bytes, bool is_large)
{
    size_t wanted, bytes, capacity = vector->capacity ? vector->capacity : FIRST_CAPACITY / 2;
    if (__builtin_add_overflow(vector->count, more, &wanted) || __builtin_mul_overflow(capacity, 2, &capacity))
        return false;
    capacity = capacity < wanted ? wanted : capacity;
    if (__builtin_mul_overflow(capacity, item_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    void *items = is_large ? base_array_resize(vector->items, vector->capacity * item_bytes, bytes)
                           : realloc(vector->items, bytes);
    if (!items)
        return false;
    vector->items = items;
    vector->capacity = capacity;
    return true;
}

void base_vector_free(struct base_vector *vector)
{
    free(vector->items);
    *vector = (struct base_vector){0};
}

void base_vector_free_large(struct base_vector *vector, size_t item_bytes)
{
    base_array_free(vector->items, vector->capacity * item_bytes);
    *vector = (struct base_vector){0};
}
