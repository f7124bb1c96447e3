// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_parts.h"

#include <string.h>

#include "formats/qut_checksum_inline.h"
#include "formats/qut_table_check.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/file_blocks.h"

struct finder {
    const uint8_t *bytes;
    size_t size;
    size_t next_file, next_block; // at or behind where it was looked for last; size: there is none
};

static bool read_file_header(const struct finder *finder, size_t at, struct qut_trace_file_header *header)
{
    if (finder->size - at < sizeof *header)
        return false;
    memcpy(header, finder->bytes + at, sizeof *header);
    return memcmp(header->magic, QUT_TRACE_FILE_MAGIC, sizeof header->magic) == 0 &&
           qut_checksum_agrees(header->checksum,
                               qut_table_checksum(header, offsetof(struct qut_trace_file_header, checksum)));
}

static bool is_file_header(const struct finder *finder, size_t at)
{
    struct qut_trace_file_header header;
    return read_file_header(finder, at, &header);
}

static size_t find_file(const struct finder *finder, size_t at)
{
    while (at < finder->size) {
        const uint8_t *hit = memmem(finder->bytes + at, finder->size - at, QUT_TRACE_FILE_MAGIC, 8);
        if (!hit)
            break;
        at = (size_t)(hit - finder->bytes);
        if (is_file_header(finder, at))
            return at;
        at++;
    }
    return finder->size;
}

// The next header of either kind. What was found once is not looked for again: time stays linear.
static size_t resume(struct finder *finder, size_t at)
{
    if (finder->next_file < at)
        finder->next_file = find_file(finder, at);
    if (finder->next_block < at)
        finder->next_block = trace_file_blocks_next_header(finder->bytes, finder->size, at);
    return finder->next_file < finder->next_block ? finder->next_file : finder->next_block;
}

static bool add(struct trace_vector *parts, size_t at)
{
    struct file_part *place = trace_vector_add(parts);
    if (place)
        *place = (struct file_part){.offset = at};
    return place;
}

// Where the contents of a block end. A writer that was killed leaves less of its last block than that says: what is
// joined behind it begins where the block would go on.
static size_t contents_end(struct finder *finder, size_t at, const struct qut_trace_file_block *block)
{
    const size_t rest = finder->size - at, packed = block->packed_bytes < rest ? block->packed_bytes : rest;
    if (finder->next_file < at)
        finder->next_file = find_file(finder, at);
    if (finder->next_file - at >= packed ||
        qut_checksum_agrees(block->contents_checksum, qut_table_checksum(finder->bytes + at, packed)))
        return at + packed;
    return finder->next_file;
}

static bool find_all(struct trace_vector *parts, struct finder *finder)
{
    struct qut_trace_file_block block;
    const size_t size = finder->size;
    if (!add(parts, 0))
        return false;
    size_t at = sizeof(struct qut_trace_file_header);
    bool is_behind = false; // a trailer: whatever is there begins a new one, also if only half of its header is
    while (at < size) {
        if (is_behind || is_file_header(finder, at)) {
            is_behind = false;
            if (!add(parts, at))
                return false;
            at += is_file_header(finder, at) ? sizeof(struct qut_trace_file_header) : 1;
        } else if (trace_file_blocks_header_at(finder->bytes, size, at, &block)) {
            at += sizeof block;
            const size_t end = contents_end(finder, at, &block);
            is_behind = block.type == QUT_TRACE_FILE_TRAILER && end - at == block.packed_bytes;
            at = end;
        } else {
            at = resume(finder, at + 1);
        }
    }
    return true;
}

// Block behind block to a trailer that tells the part's size.
static bool is_whole(const struct finder *finder, const struct file_part *part)
{
    const size_t end = part->offset + part->size;
    struct qut_trace_file_block block = {0};
    struct qut_trace_file_trailer trailer;
    size_t at = part->offset + sizeof(struct qut_trace_file_header);
    while (at < end) {
        if (!trace_file_blocks_header_at(finder->bytes, end, at, &block) ||
            end - at - sizeof block < block.packed_bytes)
            return false;
        at += sizeof block + block.packed_bytes;
    }
    if (at != end || block.type != QUT_TRACE_FILE_TRAILER || block.packed_bytes != sizeof trailer)
        return false;
    memcpy(&trailer, finder->bytes + end - sizeof trailer, sizeof trailer);
    return trailer.file_bytes == part->size &&
           qut_checksum_agrees(block.contents_checksum, qut_table_checksum(&trailer, sizeof trailer));
}

// What a part takes the place of does not count; nor does one that was to take a place and is not whole.
static void settle(struct trace_vector *parts, const struct finder *finder)
{
    struct file_part *all = parts->items;
    size_t kept = parts->count, hidden_from = SIZE_MAX; // parts from there on, before the one looked at, are superseded
    for (size_t i = parts->count; i-- > 0;) {
        struct qut_trace_file_header header;
        if (all[i].offset >= hidden_from)
            continue;
        bool is_header = read_file_header(finder, all[i].offset, &header);
        const uint64_t before = is_header ? header.supersedes_bytes : 0;
        if (before && before <= all[i].offset && i > 0) {
            if (!is_whole(finder, &all[i]))
                continue;
            hidden_from = all[i].offset - (size_t)before;
        }
        all[--kept] = all[i];
    }
    memmove(all, all + kept, (parts->count - kept) * sizeof *all);
    parts->count -= kept;
}

bool trace_parts_find(struct trace_vector *parts, const uint8_t *bytes, size_t size)
{
    struct finder finder = {.bytes = bytes, .size = size};
    if (!find_all(parts, &finder))
        return false;
    struct file_part *all = parts->items;
    for (size_t i = 0; i < parts->count; i++)
        all[i].size = (i + 1 < parts->count ? all[i + 1].offset : size) - all[i].offset;
    settle(parts, &finder);
    return true;
}
