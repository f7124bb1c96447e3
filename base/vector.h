// SPDX-License-Identifier: Apache-2.0
// Items that grow at their end, twice the room each time. All zeros is a vector without items.
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

struct base_vector {
    void *items; // malloc's; to take them over, make the vector zeros
    size_t count, capacity;
};

// The same of one type. As a member without a name, it gives its struct items, count and capacity.
#define BASE_VECTOR(type) BASE_VECTOR_AS(type, items)
#define BASE_VECTOR_AS(type, its_items)                                                                                \
    union {                                                                                                            \
        struct base_vector vector;                                                                                     \
        struct {                                                                                                       \
            type *its_items;                                                                                           \
            size_t count, capacity;                                                                                    \
        };                                                                                                             \
    }

// Room for `more` items behind the others; false: there is no memory, and the vector is as it was.
#define BASE_RESERVE(typed, more) base_vector_reserve(&(typed)->vector, more, sizeof *(typed)->items)
// A place for one more item, not filled; NULL: there is no memory.
#define BASE_ADD(typed) ((__typeof__((typed)->items))base_vector_add(&(typed)->vector, sizeof *(typed)->items))

bool base_vector_grow(struct base_vector *vector, size_t more, size_t item_bytes, bool is_large);
void base_vector_free(struct base_vector *vector); // and empties it

static inline bool base_vector_reserve(struct base_vector *vector, size_t more, size_t item_bytes)
{
    return vector->capacity - vector->count >= more || base_vector_grow(vector, more, item_bytes, false);
}

static inline void *base_vector_add(struct base_vector *vector, size_t item_bytes)
{
    if (!base_vector_reserve(vector, 1, item_bytes))
        return NULL;
    return (char *)vector->items + vector->count++ * item_bytes;
}

// The same for many items, in huge pages where those can be had (base/array.h). A vector is of one kind for life.
static inline bool base_vector_reserve_large(struct base_vector *vector, size_t more, size_t item_bytes)
{
    return vector->capacity - vector->count >= more || base_vector_grow(vector, more, item_bytes, true);
}
void base_vector_free_large(struct base_vector *vector, size_t item_bytes);

#endif
