// SPDX-License-Identifier: Apache-2.0
// What Android's runtime, and just-in-time compilers that register their code, call what ran at an address of a
// process. Asked while it lives, soon after.
#ifndef TRACER_MANAGED_NAMES_H
#define TRACER_MANAGED_NAMES_H

#include "tracer/managed/art_at.h"
#include "tracer/managed/dex_at.h"
#include "tracer/managed/jit_at.h"

struct managed_names {
    struct managed_dex dex;
    struct managed_jit jit;
    struct managed_art_looks art;
};

struct managed_name {
    uint64_t start, end; // of the code, or bytecode
    bool may_move;       // other code may be put there
    char text[512];      // cut, if it is longer
};

// Before anything that will be asked for has run: what is there is remembered.
void managed_names_begin(struct managed_names *names, struct qut_target *target);

// since_ns: as of managed_jit_at. The target is of one process at each call, though it may be opened anew.
bool managed_name_at(struct managed_names *names, struct qut_target *target, uint64_t address, uint64_t since_ns,
                     struct managed_name *name);

void managed_names_free(struct managed_names *names);

#endif
