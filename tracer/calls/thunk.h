// SPDX-License-Identifier: Apache-2.0
// The bytes that are written: a function's thunk, with the instructions that make room for the jump to it, and that
// jump. Pure functions of the plan and of addresses; any thread, no allocation.
#ifndef TRACER_CALLS_THUNK_H
#define TRACER_CALLS_THUNK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_calls_plan.h"
#include "formats/qut_calls_thunk.h"

enum { CALLS_JUMP_BYTES = 5, CALLS_STORE_BYTES = 8 }; // on x86-64

struct calls_thunk_place {
    uint64_t load_bias;     // of the module: address = vaddr + load_bias
    uint64_t thunk_address; // where the thunk will be executed: a multiple of QUT_CALLS_THUNK_ALIGNMENT
    uint64_t block_address; // where its block begins, with the addresses of the stubs (formats/qut_calls.md)
    uint32_t function_id;   // or the number of its cell, where it is only counted
    bool is_counted;        // only: no events
    bool is_place;          // within a function (x86-64): nothing is known of the stack, the flags, the registers
    // Counted by the cell `function_id`, and one of 2^thinning_log2 of a thread's calls makes events of this id, which
    // is not 0. x86-64 only.
    uint32_t thinned_id, thinning_log2;
    uint64_t enter_thunk;   // of these: a thunk of the function that writes events
    uint8_t architecture;   // of the plan's header
    int64_t own_tls_offset; // of the process's header; for counting
};

// Where an instruction of the function is in its copy: what stands at entry + patch_at + from is executed at
// thunk + to. The first one's `from` is 0; one more than there are instructions stands for what follows them, where
// something does (no QUT_PLAN_ENDS).
struct calls_boundary {
    uint8_t from, to;
};

struct calls_thunk {
    uint8_t bytes[QUT_CALLS_THUNK_BYTES_MAX];
    uint8_t size_bytes;
    uint8_t moved_at; // bytes behind the thunk's start where the copy begins: what the stub goes on with
    uint8_t moved_end;
    uint8_t mask_at; // where what calls_thinning_mask gives is, 4 bytes; 0: it is not thinned
    uint8_t pushes;  // bit i: the copy of instruction i begins with a push that the instruction has not
    uint8_t boundary_count;
    struct calls_boundary boundaries[QUT_PLAN_MOVES_MAX + 1];
};
static_assert((int)QUT_PLAN_MOVES_MAX + 1 == (int)QUT_CALLS_ORIGIN_BOUNDARIES, "all of them are told");

// False: something is farther away than a branch reaches (2 GiB; aarch64: 128 MiB), so that the thunk has to stand
// nearer to the module; or the function is refused.
bool calls_thunk_make(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                      struct calls_thunk *thunk);

uint32_t calls_thinning_mask(uint32_t log2); // at most 31

// What is exchanged in the module, in the order in which it is to be written.
struct calls_patch {
    struct calls_patch_piece {
        uint64_t address; // in the process
        uint8_t size_bytes;
        uint8_t bytes[8];
        uint8_t original[8]; // as in the file
    } pieces[2];
    unsigned piece_count; // 2 for SHORT: first the jump in the padding
};

// False: the thunk is farther away than that. A TRAP is one byte 0xcc: whoever catches it jumps to the thunk.
bool calls_patch_make(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                      struct calls_patch *patch);

#endif
