// SPDX-License-Identifier: Apache-2.0
// Strings that are kept once, so that two are equal where their addresses are.
#ifndef TRACER_NAMES_STRINGS_H
#define TRACER_NAMES_STRINGS_H

#include "tracer/names/index.h"

struct names_strings {
    struct names_index index;
    const char **items;
    size_t count, capacity;
    char **blocks;
    size_t block_count, block_capacity;
    size_t block_used, block_bytes; // of the last one
};

// NULL without memory.
const char *names_string(struct names_strings *strings, const char *text, size_t length);
void names_strings_free(struct names_strings *strings);

#endif
