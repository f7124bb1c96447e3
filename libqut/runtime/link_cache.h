// SPDX-License-Identifier: Apache-2.0
// A thread's memory of the rules that it met last, each with a guess which of them comes next. A walk goes from entry
// to entry by the guesses; what it loads from the stack is only compared, so that nothing waits for those loads.
//
//   cfa = sp + k  or  fp + k;  ra = *(cfa + r);  fp' = fp  or  *(cfa + f)
//
// Only rules of this shape have entries; a walk leaves other frames by the long way. Belongs to the outermost walk of
// its thread: a handler's walk that interrupts one does without.
#ifndef QUT_RUNTIME_LINK_CACHE_H
#define QUT_RUNTIME_LINK_CACHE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_table.h"
#include "libqut/arch/native.h"

enum { RUNTIME_LINK_COUNT = 1024, RUNTIME_LINK_SET_BITS = 9, RUNTIME_LINK_WAYS = 2 };

// Where a frame's caller is found: from the cfa, which is the caller's sp.
struct runtime_link_step {
    int16_t ra_offset_bytes; // negative
    int16_t fp_offset_bytes; // negative; 0: fp is unchanged
};

struct runtime_link {
    uintptr_t key;       // what is looked up is key - 1: in a caller, key is the plain return address. 0: empty
    uint16_t next_bytes; // from the first entry to the one that the caller had last time
    uint16_t cfa; // bytes from the base, a multiple of the word; plus enum runtime_link_base. 0: the outermost frame
    struct runtime_link_step step;
};
static_assert(sizeof(struct runtime_link) == sizeof(uintptr_t) + 8, "four in a cache line, on machines of 64 bits");
static_assert(sizeof(struct runtime_link) * RUNTIME_LINK_COUNT <= UINT16_MAX, "next_bytes reaches every entry");
static_assert(RUNTIME_LINK_WAYS == 2, "what is not the first is the second");

// In `cfa`: the base is fp, else sp; and fp' = *fp, as in nearly all frames of that kind. Told apart, these wait for a
// load and for nothing else.
enum runtime_link_base { RUNTIME_LINK_FP = 1, RUNTIME_LINK_CHAIN = 2, RUNTIME_LINK_BASES = 3 };

static inline uint16_t runtime_link_cfa(unsigned bytes, bool by_fp, int fp_offset_bytes)
{
    const bool is_chain = by_fp && fp_offset_bytes && fp_offset_bytes + (int)bytes == 0;
    return (uint16_t)(bytes | (by_fp ? RUNTIME_LINK_FP : 0) | (is_chain ? RUNTIME_LINK_CHAIN : 0));
}

// Entries whose keys hash to it, the newer one first. The tags, of their keys, tell which one to look at: each is a
// cache line.
struct runtime_link_set {
    uint16_t entries_bytes[RUNTIME_LINK_WAYS];
    uint16_t tags[RUNTIME_LINK_WAYS];
};

struct runtime_link_cache {
    uint32_t epoch; // of the module list that all entries were made from
    uint32_t hand;  // the entry that is replaced next
    // Links that mispredict are worse than none. Walks in a row that did, how many walks do without, and how many will,
    // should it be so again.
    uint8_t mispredicted_walks, pause, next_pause;
    bool has_machine_keys; // some of a virtual machine's code, which are complements
    // The first is the rule of the frame that was interrupted last. The others are in the order in which they were
    // made: neighbours on the stack lie together. Behind them one for a rule that holds at this moment only, whose key
    // stays 0, and one that stays empty.
    struct runtime_link links[RUNTIME_LINK_COUNT + 2];
    struct runtime_link_set sets[1 << RUNTIME_LINK_SET_BITS];
};

static inline struct runtime_link *runtime_link_at(struct runtime_link_cache *cache, size_t next_bytes)
{
    return (struct runtime_link *)((char *)cache->links + next_bytes);
}

static inline uint16_t runtime_link_bytes(const struct runtime_link_cache *cache, const struct runtime_link *link)
{
    return (uint16_t)((const char *)link - (const char *)cache->links);
}

// 2^32 divided by the golden ratio: neighbouring pcs land in different sets.
static inline uint32_t runtime_link_hash(uintptr_t key)
{
    return (uint32_t)key * 0x9e3779b1u;
}

static inline uint16_t runtime_link_tag(uint32_t hash)
{
    return (uint16_t)(hash >> (32 - RUNTIME_LINK_SET_BITS - 16));
}

// NULL where it is not there.
static inline struct runtime_link *runtime_link_find(struct runtime_link_cache *cache, uintptr_t key)
{
    const uint32_t hash = runtime_link_hash(key);
    const struct runtime_link_set *set = &cache->sets[hash >> (32 - RUNTIME_LINK_SET_BITS)];
    struct runtime_link *link = runtime_link_at(cache, set->entries_bytes[set->tags[0] != runtime_link_tag(hash)]);
    return link->key == key ? link : NULL;
}

// Makes room for a key that is not there; the caller fills the rest. Entry 0 is no place for it:
// empty sets name that one.
static inline struct runtime_link *runtime_link_make(struct runtime_link_cache *cache, uintptr_t key)
{
    uint32_t hand = cache->hand + 1 < RUNTIME_LINK_COUNT ? cache->hand + 1 : 1;
    struct runtime_link *link = &cache->links[hand];
    const uint32_t hash = runtime_link_hash(key);
    struct runtime_link_set *set = &cache->sets[hash >> (32 - RUNTIME_LINK_SET_BITS)];
    cache->hand = hand;
    set->entries_bytes[1] = set->entries_bytes[0];
    set->tags[1] = set->tags[0];
    set->entries_bytes[0] = runtime_link_bytes(cache, link);
    set->tags[0] = runtime_link_tag(hash);
    link->key = key;
    return link;
}

enum { RUNTIME_LINK_MISPREDICTED_WALKS = 4, RUNTIME_LINK_PAUSE_MIN = 8, RUNTIME_LINK_PAUSE_MAX = 128 };

__attribute__((noinline, cold, unused)) static void runtime_links_mispredict(struct runtime_link_cache *cache)
{
    if (++cache->mispredicted_walks < RUNTIME_LINK_MISPREDICTED_WALKS)
        return;
    cache->mispredicted_walks = RUNTIME_LINK_MISPREDICTED_WALKS - 1; // one is enough after a pause
    cache->pause = cache->next_pause;
    if (cache->next_pause < RUNTIME_LINK_PAUSE_MAX)
        cache->next_pause = (uint8_t)(cache->next_pause * 2);
}

// Of a walk that went by them as far as it has come. Keys that were not known at all do not count: nothing knows them.
static inline void runtime_links_judge(struct runtime_link_cache *cache, size_t frame_count, size_t mispredicted_count)
{
    if (__builtin_expect(mispredicted_count * 2 > frame_count, 0)) {
        runtime_links_mispredict(cache);
    } else if (__builtin_expect(cache->mispredicted_walks != 0, 0)) {
        cache->mispredicted_walks = 0;
        cache->next_pause = RUNTIME_LINK_PAUSE_MIN;
    }
}

// Drops what was made from another list of modules.
void runtime_link_cache_restart(struct runtime_link_cache *cache, uint32_t epoch);

// A table's rule as an entry keeps it: all but key and next_bytes. False: it has not the shape.
static inline bool runtime_link_pack(const struct qut_rule_cell *cell, struct runtime_link *link)
{
    const struct arch *arch = &arch_native_arch;
    int fp = cell->slot[1 + ARCH_NATIVE_FP_SLOT], ra = cell->slot[QUT_SLOT_RA], word = arch->word_bytes;
    bool by_fp = cell->reg == arch->tracked[ARCH_NATIVE_FP_SLOT];
    if (cell->form != QUT_CELL_FRAME || cell->flags & QUT_RULE_SIGNAL ||
        (cell->flags >> QUT_CELL_AUX_SHIFT & 3) != QUT_CELL_AUX_NONE || (!by_fp && cell->reg != arch->sp_reg))
        return false;
    if (ra == QUT_SLOT_UNDEFINED) {
        link->cfa = 0;
        link->step = (struct runtime_link_step){0};
        return true;
    }
    int cfa = cell->cfa_words * word;
    int ra_offset = (ra - cell->anchor_words) * word, fp_offset = (fp - cell->anchor_words) * word;
    if (fp == QUT_SLOT_SAME)
        fp_offset = 0;
    // All that is read lies between the base and the cfa. Where it need not, the walk checks.
    bool is_below_fp = by_fp && ARCH_NATIVE_FRAME_IS_BELOW_FP;
    int lowest = is_below_fp || cfa > -INT16_MIN ? INT16_MIN : -cfa;
    if (cfa < (is_below_fp ? 0 : word) || cfa > UINT16_MAX || ra == QUT_SLOT_SAME || ra_offset >= 0 ||
        ra_offset < lowest || fp == QUT_SLOT_UNDEFINED || fp_offset > (fp == QUT_SLOT_SAME ? 0 : -word) ||
        fp_offset < lowest)
        return false;
    link->cfa = runtime_link_cfa((unsigned)cfa, by_fp, fp_offset);
    link->step.ra_offset_bytes = (int16_t)ra_offset;
    link->step.fp_offset_bytes = (int16_t)fp_offset;
    return true;
}

#endif
