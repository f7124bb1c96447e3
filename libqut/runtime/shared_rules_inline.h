// SPDX-License-Identifier: Apache-2.0
// Rules that some walk of this process has looked up, for all its threads: one word each, so that it is read and
// written whole without a lock. Belongs to a list of modules, of which all of its rules are true, and goes with it.
//
//   key * odd number = set | tag     modulo 2^48: no two keys have the same, so both together are as good as the key
//   word             = tag | rule
//
// Rules that do not fit into their bits are looked up each time.
#ifndef QUT_RUNTIME_SHARED_RULES_INLINE_H
#define QUT_RUNTIME_SHARED_RULES_INLINE_H

#include <stdatomic.h>

#include "libqut/runtime/link_cache.h"

enum {
    RUNTIME_SHARED_SET_BITS = 12,
    RUNTIME_SHARED_WAYS = 4,
    // Of a rule, in words of the machine.
    RUNTIME_SHARED_CFA_BITS = 12,
    RUNTIME_SHARED_RA_BITS = 7,
    RUNTIME_SHARED_FP_BITS = 8,
    RUNTIME_SHARED_BY_FP_SHIFT = RUNTIME_SHARED_CFA_BITS,
    RUNTIME_SHARED_RA_SHIFT = RUNTIME_SHARED_BY_FP_SHIFT + 1,
    RUNTIME_SHARED_FP_SHIFT = RUNTIME_SHARED_RA_SHIFT + RUNTIME_SHARED_RA_BITS,
    RUNTIME_SHARED_RULE_BITS = RUNTIME_SHARED_FP_SHIFT + RUNTIME_SHARED_FP_BITS,
    RUNTIME_SHARED_TAG_BITS = 64 - RUNTIME_SHARED_RULE_BITS,
    RUNTIME_SHARED_KEY_BITS = RUNTIME_SHARED_SET_BITS + RUNTIME_SHARED_TAG_BITS,
    // Where a word of 64 bits is not read whole there are none.
    RUNTIME_SHARED_IS_POSSIBLE = sizeof(uintptr_t) == 8,
};

struct runtime_shared_rules {
    _Atomic uint64_t words[1 << RUNTIME_SHARED_SET_BITS][RUNTIME_SHARED_WAYS]; // 0: none. The newer one first
};

static inline uint64_t runtime_shared_mix(uintptr_t key)
{
    return ((uint64_t)key * 0x9e3779b97f4a7c15u) & (((uint64_t)1 << RUNTIME_SHARED_KEY_BITS) - 1);
}

// `count` bits of the word, from `shift` on.
static inline unsigned runtime_shared_bits(uint64_t word, unsigned shift, unsigned count)
{
    return (unsigned)(word >> shift) & ((1u << count) - 1);
}

static inline uint64_t runtime_shared_pick(const _Atomic uint64_t *word, uint64_t tag)
{
    uint64_t there = atomic_load_explicit(word, memory_order_relaxed);
    return there >> RUNTIME_SHARED_RULE_BITS == tag ? there : 0;
}
static_assert(RUNTIME_SHARED_WAYS == 4, "all are picked from");

// It will be looked for soon.
static inline void runtime_shared_expect(const struct runtime_shared_rules *shared, uintptr_t key)
{
    __builtin_prefetch(&shared->words[runtime_shared_mix(key) >> RUNTIME_SHARED_TAG_BITS]);
}

// False: no thread looked it up, or its rule does not fit.
static inline bool runtime_shared_find(const struct runtime_shared_rules *shared, uintptr_t key,
                                       struct runtime_link *link)
{
    const uint64_t tag_mask = ((uint64_t)1 << RUNTIME_SHARED_TAG_BITS) - 1;
    uint64_t mixed = runtime_shared_mix(key), tag = mixed & tag_mask;
    const _Atomic uint64_t *set = shared->words[mixed >> RUNTIME_SHARED_TAG_BITS];
    // No jumps: its place cannot be foretold. It can stand in several ways, then it is the same in all.
    uint64_t word = runtime_shared_pick(&set[0], tag) | runtime_shared_pick(&set[1], tag) |
                    runtime_shared_pick(&set[2], tag) | runtime_shared_pick(&set[3], tag);
    unsigned ra_words = runtime_shared_bits(word, RUNTIME_SHARED_RA_SHIFT, RUNTIME_SHARED_RA_BITS);
    if (ra_words == 0 || (uint64_t)key >> RUNTIME_SHARED_KEY_BITS)
        return false;
    const unsigned word_bytes = sizeof(uintptr_t);
    unsigned by_fp = runtime_shared_bits(word, RUNTIME_SHARED_BY_FP_SHIFT, 1);
    unsigned fp_words = runtime_shared_bits(word, RUNTIME_SHARED_FP_SHIFT, RUNTIME_SHARED_FP_BITS);
    const unsigned cfa_bytes = runtime_shared_bits(word, 0, RUNTIME_SHARED_CFA_BITS) * word_bytes;
    link->step.ra_offset_bytes = (int16_t) - (int)(ra_words * word_bytes);
    link->step.fp_offset_bytes = (int16_t) - (int)(fp_words * word_bytes);
    link->cfa = runtime_link_cfa(cfa_bytes, by_fp, link->step.fp_offset_bytes);
    return true;
}

static inline void runtime_shared_put(struct runtime_shared_rules *shared, uintptr_t key,
                                      const struct runtime_link *link)
{
    const unsigned word_bytes = sizeof(uintptr_t);
    unsigned cfa_words = (link->cfa & ~(unsigned)RUNTIME_LINK_BASES) / word_bytes, by_fp = link->cfa & RUNTIME_LINK_FP;
    unsigned ra_words = (unsigned)-link->step.ra_offset_bytes / word_bytes;
    unsigned fp_words = (unsigned)-link->step.fp_offset_bytes / word_bytes;
    if (link->cfa == 0)
        ra_words = 1; // an outermost frame has none, but no rule is without
    if ((uint64_t)key >> RUNTIME_SHARED_KEY_BITS || cfa_words >> RUNTIME_SHARED_CFA_BITS || ra_words == 0 ||
        ra_words >> RUNTIME_SHARED_RA_BITS || fp_words >> RUNTIME_SHARED_FP_BITS)
        return;
    uint64_t mixed = runtime_shared_mix(key);
    uint64_t word = mixed << RUNTIME_SHARED_RULE_BITS | (uint64_t)fp_words << RUNTIME_SHARED_FP_SHIFT |
                    (uint64_t)ra_words << RUNTIME_SHARED_RA_SHIFT | (uint64_t)by_fp << RUNTIME_SHARED_BY_FP_SHIFT |
                    cfa_words;
    // Threads that write here at the same time may lose a rule, no more.
    _Atomic uint64_t *set = shared->words[mixed >> RUNTIME_SHARED_TAG_BITS];
    for (unsigned way = RUNTIME_SHARED_WAYS - 1; way > 0; way--) {
        uint64_t newer = atomic_load_explicit(&set[way - 1], memory_order_relaxed);
        atomic_store_explicit(&set[way], newer, memory_order_relaxed);
    }
    atomic_store_explicit(&set[0], word, memory_order_relaxed);
}

#endif
