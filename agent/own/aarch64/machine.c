// SPDX-License-Identifier: Apache-2.0
// The architecture lets a nop become a branch, and back, while others run it: they execute the one or the other.
#include "agent/own/inside.h"
#include "formats/qut_calls_a64.h"

#define BTI       0xd503241fu // and its three kinds
#define BTI_KINDS 0x000000c0u

static uint64_t place(uint64_t function)
{
    const uint32_t *code = (const uint32_t *)function;
    if (function % QUT_CALLS_A64_BYTES != 0)
        return 0;
    code += (*code & ~BTI_KINDS) == BTI;
    return *code == QUT_CALLS_A64_NOP ? (uint64_t)code : 0;
}

// There is nothing to be moved. Behind it stands what function it is of, for walks.
static size_t thunk(uint8_t *to, uint64_t place_at, uint64_t cell, uint32_t id)
{
    enum { MOVED_AT = QUT_CALLS_A64_LEAD_WORDS * QUT_CALLS_A64_BYTES, CODE_BYTES = MOVED_AT + QUT_CALLS_A64_BYTES };
    enum { ALIGNMENT = QUT_CALLS_THUNK_ALIGNMENT, PADDED = (CODE_BYTES + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };
    uint32_t *words = (uint32_t *)(void *)to;
    struct qut_calls_origin *origin = (struct qut_calls_origin *)(void *)(to + PADDED);
    if (!qut_calls_a64_lead((uint64_t)to, cell, id, words) ||
        !qut_calls_a64_branch((uint64_t)to + MOVED_AT, place_at + QUT_CALLS_A64_BYTES,
                              &words[QUT_CALLS_A64_LEAD_WORDS]))
        return 0;
    *origin = (struct qut_calls_origin){.mark = QUT_CALLS_ORIGIN_MARK ^ (uint64_t)origin,
                                        .address = place_at,
                                        .code_bytes = PADDED,
                                        .moved_at = MOVED_AT,
                                        .moved_end = CODE_BYTES,
                                        .boundaries = {{0, MOVED_AT}, {QUT_CALLS_A64_BYTES, MOVED_AT}}};
    return PADDED + sizeof *origin;
}

static void exchange(uint64_t at, uint32_t word)
{
    __atomic_store_n((uint32_t *)at, word, __ATOMIC_RELEASE);
    __builtin___clear_cache((char *)at, (char *)at + QUT_CALLS_A64_BYTES);
}

static void lead(uint64_t place_at, uint64_t thunk_at)
{
    uint32_t word;
    if (qut_calls_a64_branch(place_at, thunk_at, &word)) // it is, where a thunk could be made
        exchange(place_at, word);
}

static void lead_back(uint64_t place_at)
{
    exchange(place_at, QUT_CALLS_A64_NOP);
}

static uint64_t ticks(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}

static uint64_t rate(void)
{
    uint64_t hz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz ? (uint64_t)((unsigned __int128)(UINT64_C(1000000000) << 32) / hz) : 0;
}

const struct own_machine own_machine = {.reach_bytes = UINT64_C(1) << 27,
                                        .place = place,
                                        .thunk = thunk,
                                        .lead = lead,
                                        .lead_back = lead_back,
                                        .ticks = ticks,
                                        .rate = rate,
                                        .guarded = 0x10}; // PROT_BTI
