// SPDX-License-Identifier: Apache-2.0
// A thread's memory of the rules it met last, in a form that applies in a few instructions. Two ways: the newer entry
// of a set stands first. Only rules of the frequent shape are kept; others are looked up in their table each time.
//
// A walk can be interrupted by a handler that walks as well. Only the outermost walk of a thread writes (so no entry is
// ever written by two), and whoever writes takes the key away first: a handler sees an entry whole or not at all.
#ifndef QUT_RUNTIME_RULE_CACHE_H
#define QUT_RUNTIME_RULE_CACHE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_rule.h"
#include "libqut/arch/arch.h"

enum { QUT_CACHE_SETS = 256, QUT_CACHE_WAYS = 2 };
enum { QUT_CACHED_SAME = INT16_MIN, QUT_CACHED_LOST = INT16_MIN + 1 }; // instead of an offset
enum { QUT_CACHED_SP = 0xff };

// cfa = base + cfa_offset; ra and tracked registers at *(cfa + offset), unchanged, or lost.
struct qut_cached_rule {
    uintptr_t key;  // lookup pc; 0: empty
    uint32_t epoch; // of the module list it was found in
    int32_t cfa_offset_bytes;
    int16_t ra_offset_bytes; // SAME: in its register
    int16_t tracked_offset_bytes[QUT_TRACKED_MAX];
    uint8_t base_slot; // tracked register, or QUT_CACHED_SP
    uint8_t zero[7];
};
static_assert(sizeof(struct qut_cached_rule) <= 40, "a set of two fits in two cache lines with room to spare");

struct qut_rule_cache {
    struct qut_cached_rule entries[QUT_CACHE_SETS][QUT_CACHE_WAYS];
};

static inline struct qut_cached_rule *qut_cache_set(struct qut_rule_cache *cache, uintptr_t key)
{
    // 2^32 divided by the golden ratio: neighbouring pcs land in different sets.
    return cache->entries[(uint32_t)key * 0x9e3779b1u >> 24];
}
static_assert(QUT_CACHE_SETS == 1 << 8, "the hash above has 8 bits");

// NULL where it is not there.
static inline const struct qut_cached_rule *qut_cache_find(struct qut_rule_cache *cache, uintptr_t key, uint32_t epoch)
{
    const struct qut_cached_rule *set = qut_cache_set(cache, key);
    if (set[0].key == key && set[0].epoch == epoch)
        return &set[0];
    if (set[1].key == key && set[1].epoch == epoch)
        return &set[1];
    return NULL;
}

// Only by the outermost walk of the thread that owns the cache. Does nothing with rules of rarer shapes.
void qut_cache_put(struct qut_rule_cache *cache, const struct qut_arch *arch, uintptr_t key, uint32_t epoch,
                   const struct qut_rule *rule);

#endif
