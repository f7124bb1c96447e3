// SPDX-License-Identifier: Apache-2.0
// Instructions that thunks on aarch64 are made of (formats/qut_calls.md): how a function leads to its thunk, and that
// to the stub. For tracers, and for programs that do it to themselves.
#ifndef QUT_FORMATS_QUT_CALLS_A64_H
#define QUT_FORMATS_QUT_CALLS_A64_H

#include <stdbool.h>
#include <stdint.h>

enum { QUT_CALLS_A64_BYTES = 4, QUT_CALLS_A64_LEAD_WORDS = 5 };
#define QUT_CALLS_A64_NOP UINT32_C(0xd503201f)

static inline int64_t qut_calls_a64_signed(uint64_t value, unsigned bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

// b. False: it is too far, beyond 128 MiB.
static inline bool qut_calls_a64_branch(uint64_t from, uint64_t to, uint32_t *word)
{
    const uint64_t distance = to - from;
    *word = UINT32_C(0x14000000) | (uint32_t)(distance >> 2 & 0x3ffffff);
    return distance % QUT_CALLS_A64_BYTES == 0 && qut_calls_a64_signed(distance, 28) == (int64_t)distance;
}

// adrp. False: it is too far, beyond 4 GiB.
static inline bool qut_calls_a64_page(uint64_t from, unsigned reg, uint64_t address, uint32_t *word)
{
    const uint64_t pages = (address >> 12) - (from >> 12);
    *word = UINT32_C(0x90000000) | (uint32_t)(pages & 3) << 29 | (uint32_t)(pages >> 2 & 0x7ffff) << 5 | reg;
    return qut_calls_a64_signed(pages, 21) == (int64_t)pages;
}

// From a thunk at `from` to the stub whose address is at `cell`, with x17 behind these words, and the id before it.
static inline bool qut_calls_a64_lead(uint64_t from, uint64_t cell, uint32_t id,
                                      uint32_t words[QUT_CALLS_A64_LEAD_WORDS])
{
    enum { X16 = 16, X17 = 17 };
    words[0] = UINT32_C(0x10000000) | QUT_CALLS_A64_LEAD_WORDS << 5 | X17; // adr x17, behind them
    const bool is_near = qut_calls_a64_page(from + QUT_CALLS_A64_BYTES, X16, cell, &words[1]);
    words[2] = UINT32_C(0xf9400000) | (uint32_t)(cell % 4096 / 8) << 10 | X16 << 5 | X16; // ldr x16, [x16, cell]
    words[3] = UINT32_C(0xd61f0200);                                                      // br x16
    words[4] = id;
    return is_near && cell % 8 == 0;
}

#endif
