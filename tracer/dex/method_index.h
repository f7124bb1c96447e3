// SPDX-License-Identifier: Apache-2.0
// The methods of dex files, by where their code is.
#ifndef TRACER_DEX_METHOD_INDEX_H
#define TRACER_DEX_METHOD_INDEX_H

#include "tracer/dex/list.h"

struct dex_index;

// Of the dex files of a list. The bytes must stay while the index is used. Takes time and memory in proportion to the
// number of methods; a file in which classes have data in common beyond its own size is refused. NULL, with *error
// filled.
struct dex_index *dex_index_make(struct base_bytes file, const struct dex_list *list, struct base_error *error);
void dex_index_free(struct dex_index *index);

size_t dex_index_count(const struct dex_index *index); // methods with code

struct dex_found {
    const struct dex *dex;
    struct dex_code code;
    bool is_shared; // other methods have the same code; this is the first of them
};

// The method whose code an offset lies in. False where there is none, or where code overlaps other code.
bool dex_index_find(const struct dex_index *index, uint64_t offset, struct dex_found *found);

// "java.util.Arrays.binarySearch", or "Outer$Inner.run [DEDUPED]" where methods share their code (as ART marks symbols
// of compiled code that methods share). Allocated; NULL: without memory, or there is no such name.
char *dex_found_name(const struct dex_found *found);

#endif
