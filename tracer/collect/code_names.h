// SPDX-License-Identifier: Apache-2.0
// Names of code that was made at run time. Only its process knows them, and mostly only as long as it lives: each
// address is asked for when it is first met in the segment, and those without an answer once more at the end. In the
// file each is a module (QUT_TRACE_MODULE_JIT), behind those that the segment has; so is each place of which more is
// known.
#ifndef TRACER_COLLECT_CODE_NAMES_H
#define TRACER_COLLECT_CODE_NAMES_H

#include "base/interner.h"
#include "tracer/collect/collect.h"

struct code_name {
    uint64_t start, end, met_ns;
    bool has_lines, may_move;
    char *text;
};

struct unnamed_code {
    uint64_t address, met_ns;
};

struct unnamed_codes {
    BASE_VECTOR(struct unnamed_code);
};

// What is known of one place in it.
struct code_level {
    uint32_t function, file, line; // numbers of strings
};

struct code_place {
    uint64_t address, met_ns;
    uint32_t first, count; // of levels
};

struct code_places {
    BASE_VECTOR(struct code_place);
    BASE_VECTOR(struct code_level) levels;
    struct base_interner strings;
    struct collect_level *room; // for one answer
};

struct code_names {
    const struct collect_options *options;
    BASE_VECTOR(struct code_name); // ascending by start, apart
    struct unnamed_codes unnamed;  // as they were met
    struct code_places places;     // as they were met
    uint64_t dropped;              // for which there was no memory
    uint64_t pass_ns, since_ns;    // when the tables were last looked at, and the time before
};

// The segment's addresses are looked at: those that are met now came since the time before. start_ns: since when there
// can be any.
void collect_code_names_pass(struct code_names *names, uint64_t start_ns);
// An address that is in no module.
void collect_code_names_meet(struct code_names *names, uint64_t address);
// No more will be met.
void collect_code_names_end(struct code_names *names);
void collect_code_names_free(struct code_names *names);

#endif
