// SPDX-License-Identifier: Apache-2.0
// What is exchanged, written into a block of thunks (formats/qut_calls_ledger.h), and read from there.
#ifndef TRACER_RESCUE_LEDGER_H
#define TRACER_RESCUE_LEDGER_H

#include "formats/qut_calls_ledger.h"
#include "tracer/inject/owner.h"
#include "tracer/patch/patch.h"

// Room for so many sites, behind all else of a block, at a multiple of 8.
uint64_t rescue_ledger_bytes(size_t sites);
// Into a block as it will be, which will stand at `address`. Sites that do not fit the form are left out; `room`: for
// how many there is room.
void rescue_ledger_write(uint8_t *block, uint64_t address, uint64_t ledger_at, size_t room,
                         const struct patch_site *sites, size_t count, const struct qut_calls_ledger_stub *stub);

struct rescue_ledgers {
    struct patch_site *sites; // of all blocks whose owner has gone
    size_t count, room;
    struct patch_stub stub;
    struct inject_owner owner; // of one of the blocks, a living one where there is one
    unsigned blocks, living;   // whose owner has gone; whose lives, or cannot be told
};

// Reads those of a process. 0; -1: *error. rescue_ledgers_free in both cases.
int rescue_ledgers_read(pid_t pid, struct rescue_ledgers *ledgers, struct base_error *error);
void rescue_ledgers_free(struct rescue_ledgers *ledgers);

#endif
