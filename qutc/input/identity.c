// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/identity.h"

#include <elf.h>

// Bounds against files with thousands of large, overlapping notes; real ones have two or three, of under 100 bytes.
enum { NOTES_TRIED_MAX = 32, NOTES_BYTES_MAX = 1 << 20 };

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static struct qutc_bytes find_build_id(struct qutc_bytes notes, uint64_t alignment)
{
    if (notes.size > NOTES_BYTES_MAX)
        notes.size = NOTES_BYTES_MAX;
    struct qutc_cursor cursor = qutc_cursor(notes);
    uint64_t unit = alignment == 8 ? 8 : 4;
    while (qutc_cursor_left(&cursor) >= 12) {
        uint32_t name_size = qutc_read_u32(&cursor);
        uint32_t size = qutc_read_u32(&cursor);
        uint32_t type = qutc_read_u32(&cursor);
        struct qutc_bytes name = qutc_read_bytes(&cursor, name_size);
        uint64_t at = align_up(qutc_cursor_offset(&cursor), unit);
        qutc_cursor_seek(&cursor, at);
        struct qutc_bytes description = qutc_read_bytes(&cursor, size);
        if (cursor.failed)
            break;
        if (type == NT_GNU_BUILD_ID && name.size == 4 && memcmp(name.data, "GNU", 4) == 0 && size > 0)
            return description;
        at = align_up(qutc_cursor_offset(&cursor), unit);
        if (at > notes.size)
            break;
        qutc_cursor_seek(&cursor, at);
    }
    return (struct qutc_bytes){notes.data, 0};
}

struct qutc_bytes qutc_build_id(const struct qutc_elf *elf)
{
    struct qutc_bytes id = {elf->bytes.data, 0};
    struct qutc_bytes notes;
    unsigned tried = 0;
    for (size_t i = 0; i < elf->segment_count && !id.size; i++)
        if (elf->segments[i].type == PT_NOTE && tried++ < NOTES_TRIED_MAX)
            id = find_build_id(qutc_elf_segment_bytes(elf, &elf->segments[i]), elf->segments[i].alignment);
    for (size_t i = 0; i < elf->section_count && !id.size; i++)
        if (elf->sections[i].type == SHT_NOTE && tried++ < NOTES_TRIED_MAX &&
            !qutc_elf_section_bytes(elf, &elf->sections[i], &notes, NULL))
            id = find_build_id(notes, elf->sections[i].alignment);
    return id;
}

// Four independent 64-bit lanes, each fed every fourth word by multiply-rotate-multiply (the rounds and constants of
// xxHash64), then mixed into one another so that each byte of the result depends on each byte of the file.
static const uint64_t prime_1 = 0x9e3779b185ebca87U;
static const uint64_t prime_2 = 0xc2b2ae3d27d4eb4fU;
static const uint64_t prime_3 = 0x165667b19e3779f9U;

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t feed(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * prime_2, 31) * prime_1;
}

static uint64_t avalanche(uint64_t value)
{
    value = (value ^ value >> 33) * prime_2;
    value = (value ^ value >> 29) * prime_3;
    return value ^ value >> 32;
}

struct hash {
    uint64_t lane[4];
    uint64_t size;
};

// All pieces but the last are whole words of all lanes.
static void feed_piece(void *context, struct qutc_bytes bytes)
{
    struct hash *hash = context;
    const uint8_t *at = bytes.data, *end = bytes.data + bytes.size;
    uint64_t word[4];
    for (; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (unsigned i = 0; i < 4; i++)
            hash->lane[i] = feed(hash->lane[i], word[i]);
    }
    hash->size += (size_t)(at - bytes.data);
    if (at == end)
        return;
    memset(word, 0, sizeof word);
    memcpy(word, at, (size_t)(end - at));
    for (unsigned i = 0; i < 4; i++)
        hash->lane[i] = feed(hash->lane[i], word[i]);
    hash->size += (size_t)(end - at);
}

void qutc_content_hash(const struct qutc_elf *elf, uint8_t hash[32])
{
    struct hash sum = {.lane = {prime_1 + prime_2, prime_2, 0, 0 - prime_1}};
    if (elf->source)
        qutc_file_map_each(elf->source, feed_piece, &sum);
    else
        feed_piece(&sum, elf->bytes);
    if (sum.size % sizeof sum.lane == 0)
        for (unsigned i = 0; i < 4; i++)
            sum.lane[i] = feed(sum.lane[i], 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 4; i++)
            sum.lane[i] = avalanche(
                feed(sum.lane[i], sum.lane[(i + 1) % 4] ^ sum.lane[(i + 2) % 4] ^ sum.lane[(i + 3) % 4]) + sum.size);
    memcpy(hash, sum.lane, sizeof sum.lane);
}
