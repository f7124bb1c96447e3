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

static bool is_file_header(const struct finder *finder, size_t at)
{
    struct qut_trace_file_header header;
    if (finder->size - at < sizeof header)
        return false;
    memcpy(&header, finder->bytes + at, sizeof header);
    return memcmp(header.magic, QUT_TRACE_FILE_MAGIC, sizeof header.magic) == 0 &&
           qut_checksum_agrees(header.checksum,
                               qut_table_checksum(&header, offsetof(struct qut_trace_file_header, checksum)));
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

static bool add(struct trace_vector *offsets, size_t at)
{
    size_t *place = trace_vector_add(offsets);
    if (place)
        *place = at;
    return place;
}

bool trace_parts_find(struct trace_vector *offsets, const uint8_t *bytes, size_t size)
{
    struct finder finder = {.bytes = bytes, .size = size};
    struct qut_trace_file_block block;
    if (!add(offsets, 0))
        return false;
    size_t at = sizeof(struct qut_trace_file_header);
    bool is_behind = false; // a trailer: whatever is there begins a new one, also if only half of its header is
    while (at < size) {
        if (is_behind || is_file_header(&finder, at)) {
            is_behind = false;
            if (!add(offsets, at))
                return false;
            at += sizeof(struct qut_trace_file_header);
        } else if (trace_file_blocks_header_at(bytes, size, at, &block)) {
            is_behind = block.type == QUT_TRACE_FILE_TRAILER;
            at += sizeof block;
            at += block.packed_bytes < size - at ? block.packed_bytes : size - at;
        } else {
            at = resume(&finder, at + 1);
        }
    }
    return true;
}
