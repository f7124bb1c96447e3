// SPDX-License-Identifier: Apache-2.0
// How a block's bytes read. Shared by the writer's tests, the checker and the lookup. Specification: qut_table.md.
//
//   even number of bytes:  pc[n] lead[n]                    every code is one byte; n = bytes / 2
//   odd:                   n pc[n] [0] code ... code        codes have 1, 2 or 4 bytes and are read from the end
//   odd, first byte 0:     0 u32 wide_offset [0] code       the rows are in `wides`; the code repeats the last one
//
// A code ends with its lead byte, so that the code before any block's first byte, the rule in force where the block
// begins, can be read backwards without knowing where that block began.
#ifndef FORMATS_QUT_TABLE_CODE_INLINE_H
#define FORMATS_QUT_TABLE_CODE_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "formats/qut_table.h"

#define QUT_REF_RUN 0x80000000u // a reference names a run, else a rule

enum { QUT_LEAD_WIDE = 255, QUT_BLOCK_BYTES_MAX = 255, QUT_WIDE_BLOCK_HEAD = 5 };

// Bytes of the code with this lead.
static inline unsigned qut_code_bytes(const struct qut_table_leads *leads, uint8_t lead)
{
    if (lead < leads->short_rules + leads->short_runs)
        return 1;
    return lead == QUT_LEAD_WIDE ? 4 : 2;
}

// The reference of the code that ends before `end`.
static inline uint32_t qut_code_ref(const struct qut_table_leads *leads, const uint8_t *end)
{
    uint32_t lead = end[-1];
    if (lead < leads->short_rules)
        return lead;
    lead -= leads->short_rules;
    if (lead < leads->short_runs)
        return QUT_REF_RUN | lead;
    if (end[-1] == QUT_LEAD_WIDE) {
        // run flag in the top bit of three bytes
        uint32_t wide = (uint32_t)end[-4] | (uint32_t)end[-3] << 8 | (uint32_t)end[-2] << 16;
        return (wide & 0x7fffff) | (wide & 0x800000 ? QUT_REF_RUN : 0);
    }
    lead -= leads->short_runs;
    if (lead < leads->long_rule_leads)
        return leads->short_rules + (lead << 8) + end[-2];
    lead -= leads->long_rule_leads;
    return QUT_REF_RUN | (leads->short_runs + (lead << 8) + end[-2]);
}

enum qut_cell_owner { QUT_CELLS_OWN, QUT_CELLS_STANDARD, QUT_CELL_OWNERS };

struct qut_cell_place {
    enum qut_cell_owner owner;
    uint32_t index; // among its cells
};

// Where the cell of a rule id is: own ones with codes of one byte come first, then all standard ones, then what is left
// of the own ones. Without jumps: what an id names is as good as random.
static inline struct qut_cell_place qut_cell_place(const struct qut_table_leads *leads, uint32_t id)
{
    const uint32_t standard = id - leads->short_own;
    const uint32_t is_standard = standard < leads->standard_count; // one that is below short_own is far above
    const uint32_t is_behind = id >= leads->short_own;
    const uint32_t before = is_standard ? leads->short_own : leads->standard_count;
    return (struct qut_cell_place){(enum qut_cell_owner)is_standard, id - (before & (0 - is_behind))};
}

// How many of the n ascending bytes at pcs are <= x. Reads whole words: up to 7 bytes past the n.
static inline unsigned qut_count_reached(const uint8_t *pcs, unsigned n, uint8_t x)
{
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    const uint64_t wanted = x * ones;
    for (unsigned i = 0; i < n; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, pcs + i, 8);
        // Per byte, without borrows between them: bit 7 of `low` says x's low bits >= the byte's.
        uint64_t low = (wanted | high) - (bytes & ~high);
        uint64_t beyond = ~((wanted & ~bytes) | (~(wanted ^ bytes) & low)) & high;
        if (beyond) { // they ascend: it is the first that is not reached
            unsigned reached = i + (unsigned)__builtin_ctzll(beyond) / 8;
            return reached < n ? reached : n;
        }
    }
    return n;
}

static inline uint64_t qut_load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

// Sum of the first `count` block sizes of a group. No jumps: a count is as good as random.
static inline uint32_t qut_group_bytes_before(const struct qut_table_group *group, unsigned count)
{
    // From here on, `count` bytes of ones and then zeros.
    static const uint8_t ones[2 * QUT_GROUP_BLOCKS + 4] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    };
    const uint8_t *mask = ones + QUT_GROUP_BLOCKS - count;
    const uint64_t even = 0x00ff00ff00ff00ffu;
    uint64_t sums = 0; // four, of 16 bits
    for (unsigned i = 0; i < QUT_GROUP_BLOCKS; i += 8) {
        // The last word begins four bytes early, so as to end with the group.
        unsigned first = i < 24 ? i : 20;
        uint64_t word = qut_load_u64(group->block_bytes + first) & qut_load_u64(mask + first);
        word = i < 24 ? word : word >> 32;
        sums += (word & even) + ((word >> 8) & even);
    }
    return (uint32_t)((sums * 0x0001000100010001u) >> 48);
}
static_assert(QUT_GROUP_BLOCKS == 28, "three words and a half");

// The rows of one block or run.
struct qut_block_view {
    const uint8_t *pcs;
    const uint8_t *end; // of the codes
    unsigned row_count;
    bool one_byte_codes; // codes are the row_count bytes after the pcs
};

// Not for blocks that are wide (odd, first byte 0).
static inline struct qut_block_view qut_block_view(const uint8_t *bytes, unsigned size)
{
    struct qut_block_view view = {bytes, bytes + size, size / 2, true};
    if (size & 1) {
        view.pcs = bytes + 1;
        view.row_count = bytes[0];
        view.one_byte_codes = false;
    }
    return view;
}

// The reference of row `row`.
static inline uint32_t qut_block_ref(const struct qut_table_leads *leads, const struct qut_block_view *view,
                                     unsigned row)
{
    if (view->one_byte_codes)
        return qut_code_ref(leads, view->pcs + view->row_count + row + 1);
    const uint8_t *end = view->end;
    for (unsigned i = view->row_count - 1; i > row; i--)
        end -= qut_code_bytes(leads, end[-1]);
    return qut_code_ref(leads, end);
}

// A block whose rows do not fit 255 bytes: u32 row_count, pc[row_count] (to a multiple of 4), u32 ref[row_count].
struct qut_wide_view {
    const uint8_t *pcs;
    const uint8_t *refs;
    uint32_t row_count;
};

static inline uint32_t qut_load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static inline size_t qut_wide_bytes(uint32_t row_count)
{
    return 4 + ((row_count + 3u) & ~3u) + 4 * (size_t)row_count;
}

static inline struct qut_wide_view qut_wide_view(const uint8_t *wide)
{
    uint32_t row_count = qut_load_u32(wide);
    return (struct qut_wide_view){wide + 4, wide + 4 + ((row_count + 3u) & ~3u), row_count};
}

#endif
