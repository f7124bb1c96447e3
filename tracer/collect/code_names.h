// SPDX-License-Identifier: Apache-2.0
// Names of code that was made at run time. Only its process knows them, and mostly only as long as it lives: each
// address is asked for when it is first met in the segment, and those without an answer once more at the end. In the
// file each is a module (QUT_TRACE_MODULE_JIT), behind those that the segment has.
#ifndef TRACER_COLLECT_CODE_NAMES_H
#define TRACER_COLLECT_CODE_NAMES_H

#include "base/vector.h"
#include "tracer/collect/collect.h"

struct code_name {
    uint64_t start, end, met_ns;
    char *text;
};

struct unnamed_code {
    uint64_t address, met_ns;
};

struct unnamed_codes {
    BASE_VECTOR(struct unnamed_code);
};

struct code_names {
    const struct collect_options *options;
    BASE_VECTOR(struct code_name); // ascending by start, apart
    struct unnamed_codes unnamed;  // as they were met
    uint64_t dropped;              // for which there was no memory
};

// An address that is in no module.
void collect_code_names_meet(struct code_names *names, uint64_t address);
// No more will be met.
void collect_code_names_end(struct code_names *names);
void collect_code_names_free(struct code_names *names);

#endif
