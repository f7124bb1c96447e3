// SPDX-License-Identifier: Apache-2.0
// The method that a piece of code of ART's JIT was made of which no symbol file names.
#ifndef TRACER_MANAGED_ART_AT_H
#define TRACER_MANAGED_ART_AT_H

#include "tracer/managed/dex_at.h"

struct managed_art_place {
    uint64_t start, end; // of the code
    char *method;        // allocated
};

// As things are now in dex->target. False: it is other code, or the runtime's records are not known.
bool managed_art_at(struct managed_dex *dex, uint64_t address, struct managed_art_place *place);

// For one who asks later than the code ran: code is given back, and other code put in its place.
struct managed_art_looks {
    bool is_known;
    uint64_t begun;    // collections of code, at the last look
    uint64_t since_ns; // since when there has been none; 0: one may be under way
};
// Looks for the first time: what is there then was there later, too.
void managed_art_look(struct managed_art_looks *looks, struct qut_target *target);
// The code that was at an address at some moment between since_ns (CLOCK_MONOTONIC) and now.
bool managed_art_at_since(struct managed_art_looks *looks, struct managed_dex *dex, uint64_t address, uint64_t since_ns,
                          struct managed_art_place *place);

#endif
