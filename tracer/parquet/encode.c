// SPDX-License-Identifier: Apache-2.0
// Numbers in as few bits as they need (the format's page "Encodings").
#include <string.h>

#include "tracer/parquet/inside.h"

enum { GROUP = 8 }; // what groups of packed indices are made of

// Bits, the first in the lowest ones. width 0 to 64.
struct packer {
    uint8_t *to;
    uint64_t held;
    unsigned bits; // of `held`, below 8
};

static void pack(struct packer *packer, uint64_t value, unsigned width)
{
    while (width) {
        // 56 bits at a time, so that they fit beside those that are held.
        const unsigned part = width > 56 ? 56 : width;
        packer->held |= (value & (UINT64_MAX >> (64 - part))) << packer->bits;
        packer->bits += part;
        for (; packer->bits >= 8; packer->bits -= 8, packer->held >>= 8)
            *packer->to++ = (uint8_t)packer->held;
        value = part < 64 ? value >> part : 0;
        width -= part;
    }
}

static size_t run_length(const uint32_t *indices, size_t at, size_t count)
{
    size_t end = at + 1;
    while (end < count && indices[end] == indices[at])
        end++;
    return end - at;
}

static void put_run(struct parquet_bytes *to, uint32_t index, size_t length, unsigned width)
{
    parquet_put_varint(to, (uint64_t)length << 1);
    parquet_put_little(to, index, (width + 7) / 8);
}

static void put_groups(struct parquet_bytes *to, const uint32_t *indices, size_t count, unsigned width)
{
    const size_t groups = (count + GROUP - 1) / GROUP;
    parquet_put_varint(to, (uint64_t)groups << 1 | 1);
    uint8_t *at = parquet_room(to, groups * width);
    if (!at)
        return;
    struct packer packer = {.to = at};
    for (size_t i = 0; i < groups * GROUP; i++)
        pack(&packer, i < count ? indices[i] : 0, width);
}

void parquet_encode_indices(struct parquet_bytes *to, const uint32_t *indices, size_t count, unsigned width)
{
    parquet_put_little(to, width, 1);
    for (size_t at = 0; at < count;) {
        size_t length = run_length(indices, at, count);
        if (length >= GROUP) {
            put_run(to, indices[at], length, width);
            at += length;
            continue;
        }
        // Whole groups up to one that begins a run.
        size_t end = at;
        do
            end += GROUP;
        while (end < count && run_length(indices, end, end + GROUP < count ? end + GROUP : count) < GROUP);
        end = end < count ? end : count;
        put_groups(to, indices + at, end - at, width);
        at = end;
    }
}

// The difference of two values of so many bits, which wraps as theirs do.
static int64_t difference(int64_t value, int64_t before, bool is_32)
{
    const uint64_t wide = (uint64_t)value - (uint64_t)before;
    return is_32 ? (int32_t)(uint32_t)wide : (int64_t)wide;
}

static void put_block(struct parquet_bytes *to, const int64_t *deltas, size_t count, bool is_32)
{
    int64_t least = deltas[0];
    uint64_t rest[DELTA_BLOCK_VALUES] = {0};
    uint8_t widths[DELTA_MINIBLOCKS] = {0};
    for (size_t i = 1; i < count; i++)
        least = deltas[i] < least ? deltas[i] : least;
    for (size_t i = 0; i < count; i++) {
        const uint64_t above = (uint64_t)deltas[i] - (uint64_t)least;
        rest[i] = is_32 ? (uint32_t)above : above;
    }
    for (size_t i = 0; i < DELTA_BLOCK_VALUES; i++) {
        const unsigned bits = parquet_bits(rest[i]);
        if (bits > widths[i / DELTA_MINIBLOCK_VALUES])
            widths[i / DELTA_MINIBLOCK_VALUES] = (uint8_t)bits;
    }
    parquet_put_zigzag(to, least);
    parquet_put(to, widths, sizeof widths);
    const size_t miniblocks = (count + DELTA_MINIBLOCK_VALUES - 1) / DELTA_MINIBLOCK_VALUES;
    for (size_t block = 0; block < miniblocks; block++) {
        uint8_t *at = widths[block] ? parquet_room(to, (size_t)widths[block] * DELTA_MINIBLOCK_VALUES / 8) : NULL;
        struct packer packer = {.to = at};
        for (size_t i = 0; at && i < DELTA_MINIBLOCK_VALUES; i++)
            pack(&packer, rest[block * DELTA_MINIBLOCK_VALUES + i], widths[block]);
    }
}

void parquet_encode_deltas(struct parquet_bytes *to, const int64_t *values, size_t count, bool is_32)
{
    parquet_put_varint(to, DELTA_BLOCK_VALUES);
    parquet_put_varint(to, DELTA_MINIBLOCKS);
    parquet_put_varint(to, count);
    parquet_put_zigzag(to, count ? values[0] : 0);
    for (size_t at = 1; at < count; at += DELTA_BLOCK_VALUES) {
        int64_t deltas[DELTA_BLOCK_VALUES];
        const size_t here = count - at < DELTA_BLOCK_VALUES ? count - at : DELTA_BLOCK_VALUES;
        for (size_t i = 0; i < here; i++)
            deltas[i] = difference(values[at + i], values[at + i - 1], is_32);
        put_block(to, deltas, here, is_32);
    }
}
