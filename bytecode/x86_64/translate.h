// SPDX-License-Identifier: Apache-2.0
// What bytecode/machine.h says, for x86-64.
#ifndef BYTECODE_X86_64_TRANSLATE_H
#define BYTECODE_X86_64_TRANSLATE_H

#include "formats/qut_calls_thunk.h"
#include "formats/qut_probe.h"

#pragma GCC visibility push(hidden)

enum {
    X86_64_ALIGNMENT = QUT_CALLS_THUNK_ALIGNMENT,
    X86_64_BYTES_MAX = QUT_CALLS_THUNK_BYTES_MAX, // of two instructions
};

struct bytecode_host;
uint32_t x86_64_translate(const struct qut_probe_instruction *code, uint32_t count,
                          uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX], uint8_t *to);
// enter.S
uint64_t x86_64_enter(const uint8_t *machine_code, const uint64_t *fields, struct bytecode_host *host);

#pragma GCC visibility pop

#endif
