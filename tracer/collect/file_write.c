// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/file_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codec.h"
#include "formats/qut_table_check.h"

enum { LEVEL_QUICK = 3, LEVEL_OF_CALLS = 1, WORTH_PACKING_BYTES = 64 };

static int write_all(struct trace_file *file, const uint8_t *bytes, size_t size, struct base_error *error)
{
    size_t done = 0;
    while (done < size) {
        ssize_t part = pwrite(file->fd, bytes + done, size - done, (off_t)(file->begin + file->bytes + done));
        if (part > 0) {
            done += (size_t)part;
            continue;
        }
        if (part < 0 && errno == EINTR)
            continue;
        base_fail(error, BASE_ERR_IO, "", file->bytes + done, "pwrite: %s",
                  part < 0 ? strerror(errno) : "nothing was written");
        file->failed_writes++;
        // Half a block is of no use, and its room may do for a smaller one. Should this fail too, it is written over,
        // or found damaged.
        if (ftruncate(file->fd, (off_t)(file->begin + file->bytes)) != 0)
            return -1;
        return -1;
    }
    file->bytes += size;
    return 0;
}

int collect_trace_file_begin(struct trace_file *file, int fd, const struct qut_trace_header *header, uint64_t now_ns,
                             struct base_error *error)
{
    return collect_trace_file_begin_at(file, fd, 0, 0, header, now_ns, error);
}

static int begin(struct trace_file *file, struct qut_trace_file_header *begin, struct base_error *error)
{
    memcpy(begin->magic, QUT_TRACE_FILE_MAGIC, sizeof begin->magic);
    begin->checksum = qut_table_checksum(begin, offsetof(struct qut_trace_file_header, checksum));
    return write_all(file, (const uint8_t *)begin, sizeof *begin, error);
}

int collect_trace_file_begin_at(struct trace_file *file, int fd, uint64_t begin_bytes, uint64_t supersedes_bytes,
                                const struct qut_trace_header *header, uint64_t now_ns, struct base_error *error)
{
    *file = (struct trace_file){.fd = fd, .begin = begin_bytes, .level = LEVEL_QUICK};
    struct qut_trace_file_header first = {.version = QUT_TRACE_FILE_VERSION,
                                          .pid = header->pid,
                                          .begin_ns = now_ns,
                                          .supersedes_bytes = supersedes_bytes};
    memcpy(first.identity, header->identity, sizeof first.identity);
    return begin(file, &first, error);
}

int collect_trace_file_begin_calls(struct trace_file *file, int fd, uint64_t begin_bytes, uint32_t pid, uint64_t now_ns,
                                   struct base_error *error)
{
    *file = (struct trace_file){.fd = fd, .begin = begin_bytes, .level = LEVEL_OF_CALLS, .work = base_zstd_room_new()};
    struct qut_trace_file_header first = {.version = QUT_TRACE_FILE_VERSION_CALLS, .pid = pid, .begin_ns = now_ns};
    return begin(file, &first, error);
}

static int need_buffer(struct trace_file *file, size_t bytes, struct base_error *error)
{
    if (bytes <= file->buffer_bytes)
        return 0;
    uint8_t *buffer = realloc(file->buffer, bytes);
    if (!buffer)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for a block of %zu bytes", bytes);
    file->buffer = buffer;
    file->buffer_bytes = bytes;
    return 0;
}

// Without zstd, or where it does not help, as it is. Returns the codec, and what it comes to.
static uint8_t pack(const struct trace_file *file, const struct base_bytes *pieces, size_t count, size_t size,
                    uint8_t *to, size_t room, size_t *packed_bytes)
{
    size_t done = 0;
    bool is_packed = size >= WORTH_PACKING_BYTES && file->unpacked_bytes + size > file->plain_bytes;
    for (size_t i = 0; i < count && is_packed; i++) {
        size_t more = 0;
        is_packed = base_zstd_pack_in(file->work, pieces[i], file->level, to + done, room - done, &more, NULL) == 0;
        done += more;
    }
    if (is_packed && done < size) {
        *packed_bytes = done;
        return count == 1 ? QUT_TRACE_FILE_ZSTD : QUT_TRACE_FILE_ZSTD_FRAMES;
    }
    *packed_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(to + *packed_bytes, pieces[i].data, pieces[i].size);
        *packed_bytes += pieces[i].size;
    }
    return QUT_TRACE_FILE_PLAIN;
}

int collect_trace_file_block(struct trace_file *file, enum qut_trace_file_type type, const void *contents, size_t size,
                             uint32_t sample_count, struct base_error *error)
{
    const struct base_bytes all = {contents, size};
    return collect_trace_file_pieces(file, type, &all, 1, sample_count, error);
}

int collect_trace_file_pieces(struct trace_file *file, enum qut_trace_file_type type, const struct base_bytes *pieces,
                              size_t count, uint32_t sample_count, struct base_error *error)
{
    size_t size = 0, room = 0, packed_bytes;
    for (size_t i = 0; i < count; i++) {
        const size_t bound = base_zstd_bound(pieces[i].size);
        size += pieces[i].size;
        room += bound > pieces[i].size ? bound : pieces[i].size;
    }
    struct qut_trace_file_block block = {.magic = QUT_TRACE_FILE_BLOCK_MAGIC,
                                         .type = (uint8_t)type,
                                         .index = file->block_count,
                                         .unpacked_bytes = (uint32_t)size,
                                         .sample_count = sample_count};
    if (size > QUT_TRACE_FILE_BLOCK_BYTES_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", file->bytes, "a block of %zu bytes", size);
    if (need_buffer(file, sizeof block + room, error) != 0)
        return -1;
    uint8_t *packed = file->buffer + sizeof block;
    block.codec = pack(file, pieces, count, size, packed, room, &packed_bytes);
    block.packed_bytes = (uint32_t)packed_bytes;
    block.contents_checksum = qut_table_checksum(packed, packed_bytes);
    block.checksum = qut_table_checksum(&block, offsetof(struct qut_trace_file_block, checksum));
    memcpy(file->buffer, &block, sizeof block);
    if (write_all(file, file->buffer, sizeof block + packed_bytes, error) != 0)
        return -1;
    file->block_count++;
    file->unpacked_bytes += size;
    return 0;
}

int collect_trace_file_end(struct trace_file *file, struct qut_trace_file_trailer *trailer, struct base_error *error)
{
    trailer->block_count = file->block_count;
    trailer->unpacked_bytes = file->unpacked_bytes;
    trailer->failed_writes = file->failed_writes;
    // It packs to something else each time, so it says its size only because it is never packed.
    struct qut_trace_file_block block = {.magic = QUT_TRACE_FILE_BLOCK_MAGIC,
                                         .type = QUT_TRACE_FILE_TRAILER,
                                         .index = file->block_count,
                                         .packed_bytes = sizeof *trailer,
                                         .unpacked_bytes = sizeof *trailer};
    trailer->file_bytes = file->bytes + sizeof block + sizeof *trailer;
    block.contents_checksum = qut_table_checksum(trailer, sizeof *trailer);
    block.checksum = qut_table_checksum(&block, offsetof(struct qut_trace_file_block, checksum));
    uint8_t bytes[sizeof block + sizeof *trailer];
    memcpy(bytes, &block, sizeof block);
    memcpy(bytes + sizeof block, trailer, sizeof *trailer);
    return write_all(file, bytes, sizeof bytes, error);
}

void collect_trace_file_prepare(struct trace_file *file, const void *contents, size_t size)
{
    const struct base_bytes bytes = {contents, size};
    size_t packed_bytes;
    struct base_error error;
    file->work = base_zstd_room_new();
    if (file->work && need_buffer(file, base_zstd_bound(size), &error) == 0)
        base_zstd_pack_in(file->work, bytes, TRACE_FILE_LEVEL_SHORT, file->buffer, file->buffer_bytes, &packed_bytes,
                          NULL);
}

void collect_trace_file_free(struct trace_file *file)
{
    free(file->buffer);
    base_zstd_room_free(file->work);
    *file = (struct trace_file){.fd = -1};
}
