// SPDX-License-Identifier: Apache-2.0
// Only what a shadow stack needs to know of an instruction.
#ifndef TESTS_PROOF_ORACLE_INSTRUCTION_H
#define TESTS_PROOF_ORACLE_INSTRUCTION_H

#include <stddef.h>

#include "libqut/arch/arch.h"

enum instruction_kind {
    INSTRUCTION_OTHER, // also returns and other jumps to computed places
    INSTRUCTION_CALL,  // leaves a return address
    INSTRUCTION_JUMP,  // to a fixed place: never a return
    INSTRUCTION_SYSCALL,
};

enum instruction_kind instruction_kind(const struct arch *arch, bool thumb, const uint8_t *bytes, size_t size);

// Whether these bytes are what signal handlers return to.
enum { SIGNAL_RETURN_BYTES = 9 };
bool instruction_is_signal_return(const struct arch *arch, const uint8_t bytes[SIGNAL_RETURN_BYTES]);

#endif
