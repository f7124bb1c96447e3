// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_DIFF_INSIDE_H
#define TRACER_DIFF_INSIDE_H

#include "tracer/diff/diff.h"

static inline size_t diff_all(const struct diff *diff)
{
    return diff->recordings[DIFF_A] + diff->recordings[DIFF_B];
}

static inline const char *diff_function_text(const struct diff *diff, uint32_t function)
{
    return base_interner_text(&diff->strings, diff->functions.items[function].name);
}

// The function of a name, a new one where none has been like it. BASE_HASH_NONE: no memory.
uint32_t diff_function_of(struct diff *diff, const struct name *name);

// Rows of exact calls; -1: no memory.
int diff_add_calls(struct diff *diff, size_t recording, const struct selection *selection, const struct names *names);
int diff_finish_calls(struct diff *diff);

// Of one recording of a side: its number in `told`.
static inline size_t diff_index(const struct diff *diff, enum diff_side side, size_t number)
{
    return (side == DIFF_B ? diff->recordings[DIFF_A] : 0) + number;
}

#endif
