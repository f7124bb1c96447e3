// SPDX-License-Identifier: Apache-2.0
// What a recorded process calls code that it makes while it runs: read from its memory, as long as it lives, and from
// what it writes for perf.
#ifndef TRACER_COLLECT_MADE_CODE_H
#define TRACER_COLLECT_MADE_CODE_H

#include <qut/target.h>

#include "tracer/collect/collect.h"
#include "tracer/managed/names.h"

struct made_code {
    uint32_t pid;
    struct qut_target *target; // NULL: not open
    struct managed_names managed;
    uint64_t next_ns, wait_ns; // when it may be opened again: a machine that was not there may be by then
};

// Of a process that ran before it is recorded, as that begins: code that is there then is known to be the same later.
void collect_made_code_begin(struct made_code *made);
// As struct collect_options.name_code and name_past_code; context: a struct made_code, of the same thread.
bool collect_name_made_code(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code);
bool collect_name_past_code(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code);
// As struct collect_options.levels_of_code.
size_t collect_levels_of_made_code(void *context, uint64_t address, struct collect_level *levels);
void collect_made_code_close(struct made_code *made);

#endif
