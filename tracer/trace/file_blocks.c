// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "formats/qut_checksum_inline.h"
#include "formats/qut_table_check.h"
#include "tracer/trace/segment_view.h"

struct finder {
    struct image *image;
    const uint8_t *bytes;
    size_t size;
    struct file_blocks *found;
    uint32_t next_index;
};

bool trace_file_blocks_header_at(const uint8_t *bytes, size_t size, size_t at, struct qut_trace_file_block *header)
{
    if (size - at < sizeof *header)
        return false;
    memcpy(header, bytes + at, sizeof *header);
    return header->magic == QUT_TRACE_FILE_BLOCK_MAGIC &&
           qut_checksum_agrees(header->checksum,
                               qut_table_checksum(header, offsetof(struct qut_trace_file_block, checksum)));
}

size_t trace_file_blocks_next_header(const uint8_t *bytes, size_t size, size_t at)
{
    const uint32_t magic = QUT_TRACE_FILE_BLOCK_MAGIC;
    struct qut_trace_file_block header;
    while (at < size) {
        const uint8_t *hit = memmem(bytes + at, size - at, &magic, sizeof magic);
        if (!hit)
            break;
        at = (size_t)(hit - bytes);
        if (trace_file_blocks_header_at(bytes, size, at, &header))
            return at;
        at++;
    }
    return size;
}

static bool is_sound(const struct qut_trace_file_block *header, const uint8_t *packed)
{
    return header->type && header->type < QUT_TRACE_FILE_TYPE_END && header->codec <= QUT_TRACE_FILE_ZSTD_FRAMES &&
           header->unpacked_bytes <= QUT_TRACE_FILE_BLOCK_BYTES_MAX &&
           (header->codec != QUT_TRACE_FILE_PLAIN || header->packed_bytes == header->unpacked_bytes) &&
           qut_checksum_agrees(header->contents_checksum, qut_table_checksum(packed, header->packed_bytes));
}

static void count_missing(struct finder *finder, uint32_t index, size_t at)
{
    if (index == finder->next_index)
        return;
    uint32_t missing = index > finder->next_index ? index - finder->next_index : 1;
    finder->image->damaged_blocks += missing;
    trace_image_damage(finder->image, "%" PRIu32 " blocks are missing before the one at 0x%zx", missing, at);
}

// Takes the block at `at`. False: no memory.
static bool take(struct finder *finder, size_t *at, const struct qut_trace_file_block *header)
{
    size_t start = *at + sizeof *header;
    count_missing(finder, header->index, *at);
    finder->next_index = header->index + 1;
    if (header->packed_bytes > finder->size - start) {
        finder->image->damaged_blocks++;
        finder->image->damaged_samples_least += header->sample_count;
        trace_image_damage(finder->image, "block %" PRIu32 " at 0x%zx ends behind the file", header->index, *at);
        *at = finder->size;
        return true;
    }
    const uint8_t *packed = finder->bytes + start;
    if (!is_sound(header, packed)) {
        finder->image->damaged_blocks++;
        finder->image->damaged_samples_least += header->sample_count;
        trace_image_damage(finder->image, "block %" PRIu32 " at 0x%zx: checksum mismatch", header->index, *at);
    } else {
        struct file_block *block = trace_vector_add(&finder->found->blocks);
        if (!block)
            return false;
        *block = (struct file_block){.offset = *at,
                                     .index = header->index,
                                     .type = header->type,
                                     .codec = header->codec,
                                     .packed = {packed, header->packed_bytes},
                                     .unpacked_bytes = header->unpacked_bytes};
    }
    *at = start + header->packed_bytes;
    finder->found->end = *at;
    return true;
}

static bool find_all(struct finder *finder, size_t at)
{
    while (at < finder->size) {
        struct qut_trace_file_block header;
        if (trace_file_blocks_header_at(finder->bytes, finder->size, at, &header)) {
            if (!take(finder, &at, &header))
                return false;
            continue;
        }
        size_t next = trace_file_blocks_next_header(finder->bytes, finder->size, at + 1);
        trace_image_damage(finder->image, "0x%zx bytes at 0x%zx are no block", next - at, at);
        finder->image->is_truncated = finder->image->is_truncated || next == finder->size;
        at = next;
    }
    return true;
}

int trace_file_blocks_find(struct image *image, const uint8_t *bytes, size_t size, struct file_blocks *found,
                           struct base_error *error)
{
    struct finder finder = {.image = image, .bytes = bytes, .size = size, .found = found};
    struct qut_trace_file_header header = {0};
    *found = (struct file_blocks){.blocks = trace_vector(image->memory, sizeof(struct file_block))};
    memcpy(&header, bytes, size < sizeof header ? size : sizeof header);
    bool has_magic = memcmp(header.magic, QUT_TRACE_FILE_MAGIC, sizeof header.magic) == 0;
    bool is_good = has_magic && size >= sizeof header &&
                   qut_checksum_agrees(header.checksum,
                                       qut_table_checksum(&header, offsetof(struct qut_trace_file_header, checksum)));
    size_t at = sizeof header;
    struct qut_trace_file_block first;
    if (!is_good) {
        // The blocks can be read without it, if there are any where they should be.
        if (size < at || (!has_magic && !trace_file_blocks_header_at(bytes, size, at, &first)))
            return has_magic ? base_fail(error, BASE_ERR_TRUNCATED, "file header", size, "the file ends in it")
                             : base_fail(error, BASE_ERR_MALFORMED, "file header", 0, "no trace");
        trace_image_damage(image, "the file's header is spoiled");
        image->damaged_blocks++;
    } else if (header.version < QUT_TRACE_FILE_VERSION_OLDEST || header.version > QUT_TRACE_FILE_VERSION) {
        return base_fail(error, BASE_ERR_UNSUPPORTED, "file header", offsetof(struct qut_trace_file_header, version),
                         "%s", trace_version_refusal(header.version < QUT_TRACE_FILE_VERSION_OLDEST));
    }
    if (!find_all(&finder, at))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the file's blocks");
    return 0;
}

bool trace_file_room_make(struct file_room *room)
{
    *room = (struct file_room){.of_slot = calloc(QUT_TRACE_THREADS_MAX, sizeof *room->of_slot)};
    return room->of_slot;
}

void trace_file_room_free(struct file_room *room)
{
    free(room->scratch);
    base_unzstd_room_free(room->unzstd);
    free(room->of_slot);
    free(room->raw.words);
    free(room->nodes.words);
    *room = (struct file_room){0};
}

bool trace_file_words_reserve(struct file_words *words, size_t capacity)
{
    if (capacity <= words->capacity)
        return true;
    free(words->words);
    *words = (struct file_words){calloc(capacity, sizeof *words->words), capacity};
    if (!words->words)
        words->capacity = 0;
    return words->words;
}

uint64_t *trace_file_words_take(struct file_words *words, size_t count, struct trace_memory *memory)
{
    uint64_t *taken = trace_memory_take(memory, count, sizeof *taken);
    if (!taken)
        return NULL;
    memcpy(taken, words->words, count * sizeof *taken);
    memset(words->words, 0, count * sizeof *taken);
    return taken;
}

bool trace_file_block_contents(const struct file_block *block, struct file_room *room, struct base_bytes *contents,
                               struct base_error *error)
{
    if (block->codec == QUT_TRACE_FILE_PLAIN) {
        *contents = block->packed;
        return true;
    }
    if (!room->scratch) {
        room->scratch = malloc(QUT_TRACE_FILE_BLOCK_BYTES_MAX);
        room->unzstd = base_unzstd_room_new();
    }
    if (!room->scratch) {
        base_fail(error, BASE_ERR_NO_MEMORY, "block", 0, "no memory to unpack it");
        return false;
    }
    *contents = (struct base_bytes){room->scratch, block->unpacked_bytes};
    return (block->codec == QUT_TRACE_FILE_ZSTD_FRAMES ||
            base_zstd_check(block->packed, block->unpacked_bytes, "block", error) == 0) &&
           base_unzstd_in(room->unzstd, block->packed, room->scratch, block->unpacked_bytes, "block", error) == 0;
}
