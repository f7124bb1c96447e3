// SPDX-License-Identifier: Apache-2.0
// Runs a program of an image that bytecode_verify took. Checks nothing: all of that is proven. Signal-safe where the
// host is; any thread; needs 600 bytes of stack beside the host's.
#ifndef BYTECODE_RUN_H
#define BYTECODE_RUN_H

#include "formats/qut_probe.h"

// Who does what programs ask for. `a`, `b` and `c` are r1, r2 and r3: of these, addresses are within the program's
// stack, with as many bytes behind them as the helper needs; numbers of maps and records are there.
struct bytecode_host {
    uint64_t (*call)(struct bytecode_host *host, uint32_t helper, uint64_t a, uint64_t b, uint64_t c);
};

// `fields`: QUT_PROBE_FIELD_END of them; those that the program does not claim need not be filled. Returns r0.
uint64_t bytecode_run(const struct qut_probe_instruction *code, const uint64_t *fields, struct bytecode_host *host);

#endif
