// SPDX-License-Identifier: Apache-2.0
// What stands behind a thunk's code (formats/qut_calls.md): which function it is of, and which of its instructions each
// copy is of. Whoever is interrupted in a thunk, or is stopped there, is by this where the function itself would be.
#ifndef QUT_FORMATS_QUT_CALLS_THUNK_H
#define QUT_FORMATS_QUT_CALLS_THUNK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    QUT_CALLS_THUNK_ALIGNMENT = 16,  // of thunks, and of this
    QUT_CALLS_THUNK_BYTES_MAX = 208, // with this
    QUT_CALLS_ORIGIN_BOUNDARIES = 6,
    // Of `pushes`: it is a place within a function. From behind the first instruction up to moved_at the stack pointer
    // is lower by QUT_CALLS_ORIGIN_LOWERED_BYTES.
    QUT_CALLS_ORIGIN_LOWERS = 0x80,
    QUT_CALLS_ORIGIN_LOWERED_BYTES = 256,
};
#define QUT_CALLS_ORIGIN_MARK         UINT64_C(0x6b6e756874545551)
#define QUT_CALLS_THINNING_MULTIPLIER UINT32_C(0x9e3779b1) // 2^32 by the golden ratio

struct qut_calls_origin {
    uint64_t mark;      // QUT_CALLS_ORIGIN_MARK ^ its own address
    uint64_t address;   // in the process, of the first instruction that was moved
    uint8_t code_bytes; // from the thunk's start to here
    // From the thunk's start: copies, and the jump behind them. In front of these, and behind them, nothing has been
    // done to the stack since the function was called.
    uint8_t moved_at, moved_end;
    uint8_t pushes; // QUT_CALLS_ORIGIN_LOWERS; bit i: behind the first instruction of copy i the stack has a word more
                    // than the function's
    struct {
        uint8_t from, to;                      // of an instruction, from `address`; of its copy, from the thunk's start
    } boundaries[QUT_CALLS_ORIGIN_BOUNDARIES]; // ascending; `to` 0: no more
};
static_assert(sizeof(struct qut_calls_origin) == 32, "nothing in between");

// Whether it is of a thunk around pc. `at`: its address.
static inline bool qut_calls_origin_is_of(const struct qut_calls_origin *origin, uint64_t at, uint64_t pc)
{
    return origin->mark == (QUT_CALLS_ORIGIN_MARK ^ at) && pc < at && at - pc <= origin->code_bytes;
}

// The function's instruction that pc is at, or about to be. *lower_bytes: so much lower is the stack pointer than
// there.
static inline uint64_t qut_calls_origin_pc(const struct qut_calls_origin *origin, uint64_t at, uint64_t pc,
                                           unsigned word_bytes, unsigned *lower_bytes)
{
    const uint64_t into = pc - (at - origin->code_bytes);
    unsigned last = 0;
    *lower_bytes = 0;
    if (into > 0 && into < origin->moved_at && origin->pushes & QUT_CALLS_ORIGIN_LOWERS)
        *lower_bytes = QUT_CALLS_ORIGIN_LOWERED_BYTES;
    if (into < origin->moved_at || into >= origin->moved_end)
        return origin->address;
    for (unsigned i = 1; i < QUT_CALLS_ORIGIN_BOUNDARIES && origin->boundaries[i].to; i++)
        last = into >= origin->boundaries[i].to ? i : last;
    *lower_bytes = into > origin->boundaries[last].to && origin->pushes >> last & 1 ? word_bytes : 0;
    return origin->address + origin->boundaries[last].from;
}

#endif
