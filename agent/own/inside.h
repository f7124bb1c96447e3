// SPDX-License-Identifier: Apache-2.0
// Stubs in front of a program's own functions: what own.c and read.c share, and what differs between machines.
#ifndef AGENT_OWN_INSIDE_H
#define AGENT_OWN_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/own_probes.h>

#include "bytecode/maps.h"
#include "formats/qut_probe_live.h"

#pragma GCC visibility push(hidden)

// ---- */machine.c

struct own_machine {
    uint64_t reach_bytes; // of a function's lead to its thunk
    // Where the instruction of a function is that may be exchanged, while threads run it; 0: it has none. NULL: no
    // machine code can be exchanged by the program itself.
    uint64_t (*place)(uint64_t function);
    // The thunk that leads to the stub at `cell` and then behind the place. How many bytes; 0: it is too far.
    size_t (*thunk)(uint8_t *to, uint64_t place, uint64_t cell, uint32_t id);
    // The place leads to a thunk, or is as it was. Its pages can be written and executed.
    void (*lead)(uint64_t place, uint64_t thunk);
    void (*lead_back)(uint64_t place);
    uint64_t (*ticks)(void); // of events
    uint64_t (*rate)(void);  // ns of a tick, by 2^32
    int guarded;             // bits for mprotect, of code in which indirect branches have to land on marks
};
extern const struct own_machine own_machine;

// ---- places.c

struct own_place {
    uint64_t at; // in the function
    uint64_t thunk;
};
// Makes thunks for places whose `at` is set, with ids from first_id on, near all of them. 0 or -errno.
int own_make_thunks(struct own_place *places, size_t count, uint32_t first_id, uint64_t stub);
// 0; or -errno, and all are as they were.
int own_lead(const struct own_place *places, size_t count);
// 0; or -errno of the first that could not be written.
int own_lead_back(const struct own_place *places, size_t count);

// ---- own.c

// What was made by the last begin; read by read.c.
struct own_probes {
    struct qut_probe_live laid_out;
    struct qut_probe_live *live; // NULL: none
    struct qut_probe_image image;
    struct bytecode_maps maps;
    uint32_t *masks;
    const uint64_t *slots;
    uint64_t tail, stuck_ns;
};
extern struct own_probes own_probes;
// Of this process; NULL: there is none yet.
extern const struct qut_calls_header *own_header;

#pragma GCC visibility pop

#endif
