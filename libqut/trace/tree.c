// SPDX-License-Identifier: Apache-2.0
// Nodes and raw pcs: words that are found again by their value. A word is put into the first free place of its own
// sequence of places, with a compare-and-swap, and never moves or changes. So two threads that put the same word meet
// at the same place, and one of them finds what the other has put: there are never two.
#include "libqut/trace/atomics.h"
#include "libqut/trace/segment.h"

enum { PLACES_MAX = 32, LINE_WORDS = 8 };

static uint64_t mix(uint64_t word)
{
    word = (word ^ (word >> 32 | word << 32)) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 32;
}

// The index of `word`, which is not 0, or 0: all of its places are taken. Index 0 is never given.
static uint32_t find_or_put(qut_trace_u64 *words, uint32_t mask, uint64_t word, qut_trace_u64 *count)
{
    // Four lines in an order of the word's own (all masks keep lines whole), from a word of its own in each.
    uint32_t hash = (uint32_t)mix(word), line = hash & ~(uint32_t)(LINE_WORDS - 1);
    uint32_t step = ((hash >> 24 & 31) | 1) * LINE_WORDS, first = hash >> 29;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        uint32_t index = ((line + i / LINE_WORDS * step) & mask) | ((first + i) & (LINE_WORDS - 1));
        if (index == 0)
            continue;
        // Acquire: who has the word sees its parent's, too.
        uint64_t there = __atomic_load_n(&words[index], __ATOMIC_ACQUIRE);
        if (there == word)
            return index;
        if (there != 0)
            continue;
        // Strong: where it fails, another word is there now.
        if (__atomic_compare_exchange_n(&words[index], &there, word, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            qut_count_shared(count, 1);
            return index;
        }
        if (there == word)
            return index;
    }
    return 0;
}

uint32_t qut_segment_node(struct qut_segment *segment, uint32_t parent, uint64_t code, unsigned kind)
{
    if (code >> QUT_TRACE_CODE_BITS || kind >> QUT_TRACE_KIND_BITS || parent > segment->node_mask ||
        (parent && !__atomic_load_n(&segment->nodes[parent], __ATOMIC_ACQUIRE)))
        return 0;
    uint64_t word = (uint64_t)parent << QUT_TRACE_PARENT_SHIFT | code << QUT_TRACE_KIND_BITS | kind;
    return word ? find_or_put(segment->nodes, segment->node_mask, word, &segment->counters->node_count) : 0;
}

uint32_t qut_segment_raw(struct qut_segment *segment, uint64_t address)
{
    return address ? find_or_put(segment->raw, segment->raw_mask, address, &segment->counters->raw_count) : 0;
}
