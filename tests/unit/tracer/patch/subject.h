// SPDX-License-Identifier: Apache-2.0
// What the test and the program whose code it changes share: memory behind descriptor SUBJECT_FD.
#ifndef TESTS_UNIT_TRACER_PATCH_SUBJECT_H
#define TESTS_UNIT_TRACER_PATCH_SUBJECT_H

#include <stdatomic.h>
#include <stdint.h>

enum { SUBJECT_FD = 9, SUBJECT_THREADS_MAX = 64, SUBJECT_MANY = 1000, SUBJECT_MANY_STRIDE = 128 };
enum subject_command {
    SUBJECT_NOTHING = 0,
    SUBJECT_MAP_AGAIN,
    SUBJECT_UNMAP,
    SUBJECT_UNMAP_BLOCK,
    SUBJECT_SHADOW,
    SUBJECT_GO
};

struct subject_state {
    _Atomic uint32_t ready, stop;
    _Atomic uint32_t is_inside; // a thread is where the mode says
    _Atomic uint32_t release;   // it may go on
    _Atomic uint32_t command;   // becomes NOTHING when it was done
    _Atomic uint64_t wrong;     // results that are not what they have to be
    _Atomic int64_t result;     // of a call that was made once
    _Atomic uint64_t calls[SUBJECT_THREADS_MAX];
    // Addresses in the program.
    uint64_t handler, outer, inner, fib, coroutine; // begin with five nops
    uint64_t work, fault, read, read_end, many, mapped, shared;
    uint64_t counters, block; // a page for thunks' data; some for thunks
    uint64_t block_bytes;
    uint64_t stack_begin, stack_end; // of SUBJECT_SHADOW
    int32_t calls_fd;                // of the memory that traced calls are written into
};

#endif
