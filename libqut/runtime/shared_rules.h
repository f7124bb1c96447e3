// SPDX-License-Identifier: Apache-2.0
// Rules that some walk of this process has looked up, for all its threads: one word each, so that it is read and
// written whole without a lock. Belongs to a list of modules, of which all of its rules are true, and goes with it.
//
//   key * odd number = set | tag     modulo 2^48: no two keys have the same, so both together are as good as the key
//   word             = tag | rule
//
// Rules that do not fit into their bits are looked up each time.
#ifndef QUT_RUNTIME_SHARED_RULES_H
#define QUT_RUNTIME_SHARED_RULES_H

#include <stdatomic.h>

#include "libqut/runtime/link_cache.h"

enum {
    QUT_SHARED_SET_BITS = 12,
    QUT_SHARED_WAYS = 4,
    // Of a rule, in words of the machine.
    QUT_SHARED_CFA_BITS = 12,
    QUT_SHARED_RA_BITS = 7,
    QUT_SHARED_FP_BITS = 8,
    QUT_SHARED_BY_FP_SHIFT = QUT_SHARED_CFA_BITS,
    QUT_SHARED_RA_SHIFT = QUT_SHARED_BY_FP_SHIFT + 1,
    QUT_SHARED_FP_SHIFT = QUT_SHARED_RA_SHIFT + QUT_SHARED_RA_BITS,
    QUT_SHARED_RULE_BITS = QUT_SHARED_FP_SHIFT + QUT_SHARED_FP_BITS,
    QUT_SHARED_TAG_BITS = 64 - QUT_SHARED_RULE_BITS,
    QUT_SHARED_KEY_BITS = QUT_SHARED_SET_BITS + QUT_SHARED_TAG_BITS,
    // Where a word of 64 bits is not read whole there are none.
    QUT_SHARED_IS_POSSIBLE = sizeof(uintptr_t) == 8,
};

struct qut_shared_rules {
    _Atomic uint64_t words[1 << QUT_SHARED_SET_BITS][QUT_SHARED_WAYS]; // 0: none. The newer one first
};

static inline uint64_t qut_shared_mix(uintptr_t key)
{
    return ((uint64_t)key * 0x9e3779b97f4a7c15u) & (((uint64_t)1 << QUT_SHARED_KEY_BITS) - 1);
}

// `count` bits of the word, from `shift` on.
static inline unsigned qut_shared_bits(uint64_t word, unsigned shift, unsigned count)
{
    return (unsigned)(word >> shift) & ((1u << count) - 1);
}

static inline uint64_t qut_shared_pick(const _Atomic uint64_t *word, uint64_t tag)
{
    uint64_t there = atomic_load_explicit(word, memory_order_relaxed);
    return there >> QUT_SHARED_RULE_BITS == tag ? there : 0;
}
static_assert(QUT_SHARED_WAYS == 4, "all are picked from");

// It will be looked for soon.
static inline void qut_shared_expect(const struct qut_shared_rules *shared, uintptr_t key)
{
    __builtin_prefetch(&shared->words[qut_shared_mix(key) >> QUT_SHARED_TAG_BITS]);
}

// False: nobody looked it up, or its rule does not fit.
static inline bool qut_shared_find(const struct qut_shared_rules *shared, uintptr_t key, struct qut_link *link)
{
    const uint64_t tag_mask = ((uint64_t)1 << QUT_SHARED_TAG_BITS) - 1;
    uint64_t mixed = qut_shared_mix(key), tag = mixed & tag_mask;
    const _Atomic uint64_t *set = shared->words[mixed >> QUT_SHARED_TAG_BITS];
    // No jumps: where it stands nobody can foretell. It can stand in several ways, then it is the same in all.
    uint64_t word = qut_shared_pick(&set[0], tag) | qut_shared_pick(&set[1], tag) | qut_shared_pick(&set[2], tag) |
                    qut_shared_pick(&set[3], tag);
    unsigned ra_words = qut_shared_bits(word, QUT_SHARED_RA_SHIFT, QUT_SHARED_RA_BITS);
    if (ra_words == 0 || (uint64_t)key >> QUT_SHARED_KEY_BITS)
        return false;
    const unsigned word_bytes = sizeof(uintptr_t);
    unsigned by_fp = qut_shared_bits(word, QUT_SHARED_BY_FP_SHIFT, 1);
    unsigned fp_words = qut_shared_bits(word, QUT_SHARED_FP_SHIFT, QUT_SHARED_FP_BITS);
    link->cfa = (uint16_t)(qut_shared_bits(word, 0, QUT_SHARED_CFA_BITS) * word_bytes | by_fp);
    link->step.ra_offset_bytes = (int16_t) - (int)(ra_words * word_bytes);
    link->step.fp_offset_bytes = (int16_t) - (int)(fp_words * word_bytes);
    return true;
}

static inline void qut_shared_put(struct qut_shared_rules *shared, uintptr_t key, const struct qut_link *link)
{
    const unsigned word_bytes = sizeof(uintptr_t);
    unsigned cfa_words = (link->cfa & ~(unsigned)QUT_LINK_FP) / word_bytes, by_fp = link->cfa & QUT_LINK_FP;
    unsigned ra_words = (unsigned)-link->step.ra_offset_bytes / word_bytes;
    unsigned fp_words = (unsigned)-link->step.fp_offset_bytes / word_bytes;
    if (link->cfa == 0)
        ra_words = 1; // an outermost frame has none, but no rule is without
    if ((uint64_t)key >> QUT_SHARED_KEY_BITS || cfa_words >> QUT_SHARED_CFA_BITS || ra_words == 0 ||
        ra_words >> QUT_SHARED_RA_BITS || fp_words >> QUT_SHARED_FP_BITS)
        return;
    uint64_t mixed = qut_shared_mix(key);
    uint64_t word = mixed << QUT_SHARED_RULE_BITS | (uint64_t)fp_words << QUT_SHARED_FP_SHIFT |
                    (uint64_t)ra_words << QUT_SHARED_RA_SHIFT | (uint64_t)by_fp << QUT_SHARED_BY_FP_SHIFT | cfa_words;
    // Who writes here at the same time may lose a rule, no more.
    _Atomic uint64_t *set = shared->words[mixed >> QUT_SHARED_TAG_BITS];
    for (unsigned way = QUT_SHARED_WAYS - 1; way > 0; way--) {
        uint64_t newer = atomic_load_explicit(&set[way - 1], memory_order_relaxed);
        atomic_store_explicit(&set[way], newer, memory_order_relaxed);
    }
    atomic_store_explicit(&set[0], word, memory_order_relaxed);
}

#endif
