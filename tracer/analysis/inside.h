// SPDX-License-Identifier: Apache-2.0
// What the parts of the analysis share; nobody else includes this.
#ifndef TRACER_ANALYSIS_INSIDE_H
#define TRACER_ANALYSIS_INSIDE_H

#include <stddef.h>
#include <stdlib.h>

// A place for one more item of an array that grows; NULL: no memory.
static inline void *analysis_add(void **items, size_t *room, size_t *count, size_t item_bytes)
{
    if (*count == *room) {
        size_t larger = *room ? *room * 2 : 64;
        void *grown = reallocarray(*items, larger, item_bytes);
        if (!grown)
            return NULL;
        *items = grown;
        *room = larger;
    }
    return (char *)*items + (*count)++ * item_bytes;
}

#endif
