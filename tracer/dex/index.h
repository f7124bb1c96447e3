// SPDX-License-Identifier: Apache-2.0
// The methods of dex files, by where their code is.
#ifndef TRACER_DEX_INDEX_H
#define TRACER_DEX_INDEX_H

#include "tracer/dex/list.h"

struct qut_dex_index;

// Of the dex files of a list. The bytes must stay while the index is used. Takes time and memory in proportion to the
// number of methods; a file in which classes have data in common beyond its own size is refused. NULL, with *error
// filled.
struct qut_dex_index *qut_dex_index_make(struct qutc_bytes file, const struct qut_dex_list *list,
                                         struct qutc_error *error);
void qut_dex_index_free(struct qut_dex_index *index);

size_t qut_dex_index_count(const struct qut_dex_index *index); // methods with code

struct qut_dex_found {
    const struct qut_dex *dex;
    struct qut_dex_code code;
    bool is_shared; // other methods have the same code; this is the first of them
};

// The method whose code an offset lies in. False where there is none, or where code overlaps other code.
bool qut_dex_index_find(const struct qut_dex_index *index, uint64_t offset, struct qut_dex_found *found);

// "java.util.Arrays.binarySearch", or "Outer$Inner.run [DEDUPED]" where methods share their code (as ART marks symbols
// of compiled code that methods share). Allocated; NULL: without memory, or there is no such name.
char *qut_dex_found_name(const struct qut_dex_found *found);

#endif
