// SPDX-License-Identifier: Apache-2.0
// Nodes and raw pcs: words that are found again by their value. A word is put into the first free place of its own
// sequence of places, with a compare-and-swap, and never moves or changes. So two threads that put the same word meet
// at the same place, and one of them finds what the other has put: there are never two.
//
// A node's sequence begins with its parent's line, unless that is among the first: as long as there are few nodes, the
// processor's caches have them all, and where its hash says is found without waiting. Beyond that the parent's line was
// just read, as a rule, and a frame that is new hangs from another new one more often than not: most of what a stack
// adds is in one line, which the processor waits for once.
#include "libqut/segment/atomics_inline.h"
#include "libqut/segment/segment.h"

enum {
    LINE_WORDS = 8,
    QUARTERS = 4,
    LINES = 12, // anywhere: lines are filled by families, so that one is full where others are empty
    RANGES = 3,
    RANGE_LINES = 2,  // whose own line is among those that an earlier one filled has another
    FAMILY_RANGE = 1, // children of what lies beyond it lie beside their parents
};

// The beginnings of a table, where a line of each word's own is looked at before those anywhere: as long as there are
// few words they lie close together, and their pages are not too many for the processor to remember where they are, nor
// for a short program, and for who collects it, to touch first. Not where one is more than an eighth of the table.
static const uint32_t range_masks[RANGES] = {(1u << 10) - 1, (1u << 15) - 1, (1u << 19) - 1};

static uint64_t mix(uint64_t word)
{
    word = (word ^ (word >> 32 | word << 32)) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 32;
}

// The index of `word` in this line, or 0: all its places are taken by others. Index 0 is never given. Most words have
// the first place that is looked at: a processor that foretells it goes on before the line is there.
static inline uint32_t find_in_line(qut_trace_u64 *words, uint32_t line, uint32_t first, uint64_t word,
                                    qut_trace_u64 *count)
{
    for (uint32_t i = 0; i < LINE_WORDS; i++) {
        uint32_t index = line | ((first + i) & (LINE_WORDS - 1));
        if (index == 0)
            continue;
        // Acquire: a thread that has the word sees its parent's, too.
        uint64_t there = __atomic_load_n(&words[index], __ATOMIC_ACQUIRE);
        if (there == word)
            return index;
        if (there != 0)
            continue;
        // Strong: where it fails, another word is there now.
        if (__atomic_compare_exchange_n(&words[index], &there, word, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            segment_count_shared(count, 1);
            return index;
        }
        if (there == word)
            return index;
    }
    return 0;
}

// The same of a line that is full of brothers and cousins: which place it is no processor foretells, and to be wrong
// takes longer than to compare all of them.
static inline uint32_t find_beside(qut_trace_u64 *words, uint32_t line, uint32_t first, uint64_t word,
                                   qut_trace_u64 *count)
{
    uint32_t equal = 0, is_full = 1;
    for (uint32_t i = 0; i < LINE_WORDS; i++) {
        uint64_t there = __atomic_load_n(&words[line + i], __ATOMIC_RELAXED);
        equal |= (uint32_t)(there == word) << i;
        is_full &= there != 0;
    }
    if (equal) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return line + (uint32_t)__builtin_ctz(equal);
    }
    return is_full ? 0 : find_in_line(words, line, first, word, count);
}

// The index of `word`, which is not 0, or 0: all of its places are taken. `parent`: the word beside which it is to lie,
// always the same one of the same word; 0: none.
__attribute__((noinline)) static uint32_t find_anywhere(qut_trace_u64 *words, uint32_t mask, uint64_t word,
                                                        uint32_t parent, qut_trace_u64 *count)
{
    // All masks keep lines whole. Of the lines anywhere each lies in another quarter than the one before: most of them
    // outside of the beginnings, which fill first.
    uint64_t mixed = mix(word);
    uint32_t hash = (uint32_t)mixed, line = hash & ~(uint32_t)(LINE_WORDS - 1), first = hash >> 29, index = 0;
    uint32_t step = ((uint32_t)(mixed >> 32) | 1) * LINE_WORDS;
    uint32_t quarter = mask + 1 > QUARTERS * LINE_WORDS ? (mask + 1) / QUARTERS : LINE_WORDS;
    if (parent > range_masks[FAMILY_RANGE])
        index = find_beside(words, parent & ~(uint32_t)(LINE_WORDS - 1), first, word, count);
    // A parent outside of a beginning found it full, so its children do not ask there.
    for (uint32_t range = 0; range < RANGES && !index; range++)
        if (range_masks[range] < mask >> 3 && parent <= range_masks[range])
            for (uint32_t i = 0; i < RANGE_LINES && !index; i++)
                index = find_in_line(words, (line + i * step) & range_masks[range], first, word, count);
    for (uint32_t i = 0; i < LINES && !index; i++) {
        uint32_t within = (line + i * step) & (quarter - 1), which = (line + i * quarter) & mask & ~(quarter - 1);
        index = find_in_line(words, which | within, first, word, count);
    }
    return index;
}

// The same; where most are is looked at first.
static inline uint32_t find_or_put(qut_trace_u64 *words, uint32_t mask, uint64_t word, uint32_t parent,
                                   qut_trace_u64 *count)
{
    uint32_t range_mask = range_masks[parent > range_masks[0] ? FAMILY_RANGE : 0];
    if (parent <= range_masks[FAMILY_RANGE] && range_mask < mask >> 3) {
        uint32_t hash = (uint32_t)mix(word), index = (hash & range_mask & ~(uint32_t)(LINE_WORDS - 1)) | hash >> 29;
        // Acquire: see find_in_line. Index 0 has none.
        if (__atomic_load_n(&words[index], __ATOMIC_ACQUIRE) == word)
            return index;
    }
    return find_anywhere(words, mask, word, parent, count);
}

uint32_t segment_child(struct segment *segment, uint32_t parent, uint64_t code, unsigned kind)
{
    if (code >> QUT_TRACE_CODE_BITS || kind >> QUT_TRACE_KIND_BITS || parent > segment->node_mask)
        return 0;
    uint64_t word = (uint64_t)parent << QUT_TRACE_PARENT_SHIFT | code << QUT_TRACE_KIND_BITS | kind;
    return word ? find_or_put(segment->nodes, segment->node_mask, word, parent, &segment->counters->node_count) : 0;
}

uint32_t segment_node(struct segment *segment, uint32_t parent, uint64_t code, unsigned kind)
{
    if (parent > segment->node_mask || (parent && !__atomic_load_n(&segment->nodes[parent], __ATOMIC_ACQUIRE)))
        return 0;
    return segment_child(segment, parent, code, kind);
}

uint32_t segment_raw(struct segment *segment, uint64_t address)
{
    return address ? find_or_put(segment->raw, segment->raw_mask, address, 0, &segment->counters->raw_count) : 0;
}
