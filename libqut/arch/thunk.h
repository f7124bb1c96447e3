// SPDX-License-Identifier: Apache-2.0
// What stands before the first instructions of a function whose calls are traced, known by its bytes
// (formats/qut_calls.md). Signal-safe, no allocation, any thread.
#ifndef QUT_ARCH_THUNK_H
#define QUT_ARCH_THUNK_H

#include "libqut/arch/arch.h"

enum {
    ARCH_THUNK_ALIGNMENT = 16,
    ARCH_THUNK_BYTES_MAX = 160,
    ARCH_THUNK_HEAD_BYTES = 40,
    ARCH_THUNK_JUMP_BYTES = 5, // back to the function; and from it to the thunk
};

// Before `moved`, and from moved_end on, nothing has been done to the stack since the function was called.
struct arch_thunk {
    uint64_t start, end; // end: not behind it
    uint64_t moved;      // copies of the function's first instructions, and a jump to what follows them
    uint64_t moved_end;  // 0: it is where that jump is
};

// Whether the bytes at `start` are a thunk's.
bool arch_thunk_head(const struct arch *arch, const uint8_t bytes[ARCH_THUNK_HEAD_BYTES], uint64_t start,
                     struct arch_thunk *thunk);

// Whether ARCH_THUNK_JUMP_BYTES bytes, which stand at `address`, are such a jump, and where it leads.
bool arch_thunk_jumps(const uint8_t *bytes, uint64_t address, uint64_t *target);

#endif
