// SPDX-License-Identifier: Apache-2.0
// Names of functions made readable, each once: the same ones are inlined in many places.
#ifndef TRACER_NAMES_READABLE_H
#define TRACER_NAMES_READABLE_H

#include "tracer/names/names_store.h"

struct names_readable {
    const char *raw;      // as in the file
    const char *readable; // NULL: without memory
    const char *mangled;  // raw, where that is another one; else NULL
};

struct names_readables {
    BASE_VECTOR(struct names_readable);
    struct base_hash_index index;
};

// Without memory "", and names->no_memory.
struct names_readable names_make_readable(struct names_readables *readables, struct names *names, const char *raw,
                                          size_t raw_length);
void names_readables_free(struct names_readables *readables);

#endif
