// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/readable.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/symbols/demangle.h"

struct names_readable names_make_readable(struct names_readables *readables, struct names *names, const char *raw,
                                          size_t raw_length)
{
    static const struct names_readable none = {"", "", NULL};
    const char *kept = names_keep(names, raw, raw_length);
    uint64_t hash = base_hash_word(0, (uintptr_t)kept);
    for (uint32_t step = 0, i; (i = base_hash_next(&readables->index, hash, &step)) != BASE_HASH_NONE;)
        if (readables->items[i].raw == kept)
            return readables->items[i];
    char *text = symbols_demangle(kept);
    if (!text || !BASE_RESERVE(readables, 1) || !base_hash_add(&readables->index, hash, (uint32_t)readables->count)) {
        names->no_memory = true;
        free(text);
        return none;
    }
    struct names_readable *made = BASE_ADD(readables);
    *made = (struct names_readable){.raw = kept, .readable = kept};
    if (strcmp(text, kept) != 0) {
        made->readable = names_keep(names, text, strlen(text));
        made->mangled = kept;
    }
    free(text);
    return *made;
}

void names_readables_free(struct names_readables *readables)
{
    base_vector_free(&readables->vector);
    base_hash_free(&readables->index);
}
