// SPDX-License-Identifier: Apache-2.0
// Traces, block by block, in both forms that fuzz_trace takes them in: the headers of blocks stay true to what is
// behind them, so that a change is one of contents, or of the order of blocks. (Checksums do not count here.)
#include <stdbool.h>
#include <string.h>

#include "formats/qut_trace_file.h"
#include "tests/proof/fuzz/targets.h"

enum { BLOCKS_MAX = 256, SHORT_HEAD_BYTES = 3 };

struct blocks {
    bool is_file; // else: a type, two bytes of size, contents
    size_t at[BLOCKS_MAX + 1];
    size_t count;
};

static size_t head_bytes(const struct blocks *blocks)
{
    return blocks->is_file ? sizeof(struct qut_trace_file_block) : SHORT_HEAD_BYTES;
}

static size_t contents_bytes(const struct blocks *blocks, const uint8_t *head)
{
    struct qut_trace_file_block block;
    if (!blocks->is_file)
        return head[1] | (size_t)head[2] << 8;
    memcpy(&block, head, sizeof block);
    return block.magic == QUT_TRACE_FILE_BLOCK_MAGIC ? block.packed_bytes : SIZE_MAX;
}

static void find(struct blocks *blocks, const uint8_t *data, size_t size)
{
    size_t at = blocks->is_file ? sizeof(struct qut_trace_file_header) : 0;
    blocks->count = 0;
    while (blocks->count < BLOCKS_MAX && at <= size && size - at >= head_bytes(blocks)) {
        size_t bytes = contents_bytes(blocks, data + at);
        if (bytes > size - at - head_bytes(blocks))
            break;
        blocks->at[blocks->count++] = at;
        at += head_bytes(blocks) + bytes;
    }
    blocks->at[blocks->count] = at;
}

static void set_contents_bytes(const struct blocks *blocks, uint8_t *head, size_t bytes)
{
    struct qut_trace_file_block block;
    if (!blocks->is_file) {
        head[1] = (uint8_t)bytes;
        head[2] = (uint8_t)(bytes >> 8);
        return;
    }
    memcpy(&block, head, sizeof block);
    block.packed_bytes = (uint32_t)bytes;
    if (block.codec == QUT_TRACE_FILE_PLAIN)
        block.unpacked_bytes = (uint32_t)bytes;
    memcpy(head, &block, sizeof block);
}

// What is behind moves. Contents without a size are of no use to m->bytes, and 64 KiB do not fit the short form.
static size_t mutate_contents(struct fuzz_mutation *m, const struct blocks *blocks, uint32_t which, uint8_t *data,
                              size_t size, size_t max_size)
{
    enum { GROWTH_BYTES = 64 };
    static uint8_t rest[1 << 20];
    uint8_t *head = data + blocks->at[which], *contents = head + head_bytes(blocks);
    size_t bytes = contents_bytes(blocks, head), behind = size - blocks->at[which + 1];
    size_t room = bytes + GROWTH_BYTES;
    if (room > max_size - (size - bytes))
        room = max_size - (size - bytes);
    if (!blocks->is_file && room > UINT16_MAX)
        room = UINT16_MAX;
    if (bytes == 0 || room < bytes || behind > sizeof rest)
        return size;
    // Words are what most contents are made of.
    if (fuzz_random(m, 2) && bytes >= 8) {
        uint8_t *word = contents + fuzz_random(m, (uint32_t)bytes / 8) * 8;
        m->bytes(word, 8, 8);
        return size;
    }
    memcpy(rest, contents + bytes, behind);
    size_t made = m->bytes(contents, bytes, room);
    memcpy(contents + made, rest, behind);
    set_contents_bytes(blocks, head, made);
    return size - bytes + made;
}

static size_t mutate_blocks(struct fuzz_mutation *m, struct blocks *blocks, uint8_t *data, size_t size, size_t max_size)
{
    find(blocks, data, size);
    if (blocks->count == 0)
        return m->bytes(data, size, max_size);
    uint32_t which = fuzz_random(m, (uint32_t)blocks->count);
    size_t at = blocks->at[which], end = blocks->at[which + 1];
    switch (fuzz_random(m, 8)) {
    case 0: // once more
        if (size + (end - at) > max_size)
            return size;
        memmove(data + end + (end - at), data + end, size - end);
        memcpy(data + end, data + at, end - at);
        return size + (end - at);
    case 1:
        if (blocks->count == 1)
            return size;
        memmove(data + at, data + end, size - end);
        return size - (end - at);
    case 2: m->bytes(data + at, head_bytes(blocks), head_bytes(blocks)); return size;
    default: return mutate_contents(m, blocks, which, data, size, max_size);
    }
}

// As fuzz_trace takes it: the first byte says in which form.
size_t fuzz_mutate_trace(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    enum { AS_IT_IS, AS_SEGMENT, AS_FILE, WAYS };
    if (size < 2 || data[0] % WAYS == AS_SEGMENT || fuzz_random(m, 16) == 0)
        return m->bytes(data, size, max_size);
    struct blocks blocks = {.is_file = data[0] % WAYS == AS_IT_IS};
    return 1 + mutate_blocks(m, &blocks, data + 1, size - 1, max_size - 1);
}
