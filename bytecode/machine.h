// SPDX-License-Identifier: Apache-2.0
// Programs of an image that bytecode_verify took, as machine code of the machine that this was built for: the same as
// bytecode_run does, several times as fast. All that the verifier takes can be translated, and each two instructions
// become BYTECODE_MACHINE_BYTES_MAX bytes at most.
//
// Signal handlers may come in at any instruction, and walk: neither ever leaves an address of the code on a stack, and
// behind each part of it stands what thunks of traced functions have (formats/qut_calls_thunk.h), by which whoever is
// interrupted in it is in `enter`.
#ifndef BYTECODE_MACHINE_H
#define BYTECODE_MACHINE_H

#include <stddef.h>

#include "bytecode/run.h"
#include "formats/qut_probe.h"

enum {
    BYTECODE_MACHINE_ALIGNMENT = 16,
    BYTECODE_MACHINE_BYTES_MAX = 208, // with all that stands in between
};

struct bytecode_machine {
    // Writes the machine code of a program of `count` instructions to `to`, which is aligned, has room for it, and is
    // where it will run. NULL: nothing is written. Returns how many bytes that are, a multiple of the alignment. In
    // `places` is, behind it, where in the code each instruction begins. Does not allocate or block; any thread.
    uint32_t (*translate)(const struct qut_probe_instruction *code, uint32_t count,
                          uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX], uint8_t *to);
    // Runs what was written. As bytecode_run: `fields` and `host` are, and the result, the same.
    uint64_t (*enter)(const uint8_t *machine_code, const uint64_t *fields, struct bytecode_host *host);
};
// Both NULL: for this machine there is no translator.
extern const struct bytecode_machine bytecode_machine;

#endif
