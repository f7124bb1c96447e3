// SPDX-License-Identifier: Apache-2.0
// What struct names is inside. Nodes with the same place in the code share the functions that are there:
//
//   node -> place -> functions[first], ... innermost first
#ifndef TRACER_NAMES_NAMES_STORE_H
#define TRACER_NAMES_NAMES_STORE_H

#include "base/interner.h"
#include "base/vector.h"
#include "tracer/names/names.h"

struct names_place {
    uint32_t first, count; // of functions
};

struct names {
    struct base_interner strings;
    uint32_t *place_of; // for each node
    size_t node_count;
    struct names_place *places;
    size_t place_count, place_capacity;
    BASE_VECTOR(struct name) functions;
    BASE_VECTOR(uint32_t) by_id; // for each id, the first of functions that has it
    struct base_hash_index ids;
    struct names_missing *missing;
    size_t missing_count;
    struct names_options options; // as they were asked for
    bool no_memory;               // something could not be kept
};

// Adds a function to the ones of the place that is being filled. Its strings are of names->strings (labels: of the
// trace); its id is found here.
void names_add(struct names *names, uint32_t place, struct name name);

// A string that stays; "" without memory, which names->no_memory says then.
const char *names_keep(struct names *names, const char *text, size_t length);

#endif
