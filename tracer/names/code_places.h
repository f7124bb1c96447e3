// SPDX-License-Identifier: Apache-2.0
// The different places in code that a trace's nodes are at, by the file that each is in.
#ifndef TRACER_NAMES_CODE_PLACES_H
#define TRACER_NAMES_CODE_PLACES_H

#include "base/vector.h"
#include "tracer/names/names_store.h"

enum names_way { // how a place is named
    NAMES_BY_SYMBOL,
    NAMES_BY_SYMBOL_SIGNAL, // the frame that the kernel made for a signal
    NAMES_BY_METHOD,        // bytecode
    NAMES_BY_LABEL,         // it is one already: `pc` is the label's address
    NAMES_BY_SOURCE,        // likewise, "function\nsource file"
    NAMES_BY_LEVELS,        // a machine told what is there: `pc` is the trace_module's address
    NAMES_BY_ADDRESS,       // nothing is known but where it is
};

#define NAMES_NO_FILE UINT32_MAX

struct names_key {
    uint64_t pc;   // first: keys are sorted by it
    uint32_t file; // NAMES_NO_FILE: in none
    uint32_t way;  // enum names_way
    uint32_t line; // by source; 0: not known, or not asked for
    uint32_t place;
    uint32_t node_count;
};

struct names_places {
    BASE_VECTOR(struct names_key); // one for each place; in the order of the nodes, then of files and pcs
    struct base_hash_index index;
    uint32_t *file_of_module;
    BASE_VECTOR(uint32_t) module_of_file; // the first module that is this file
    struct base_hash_index files;
};

// Fills names->place_of and names->places, which have no functions yet. False without memory.
bool names_places_find(struct names_places *places, const struct trace *trace, struct names *names);
void names_places_free(struct names_places *places);

#endif
