// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/unpack.h"

#include <elf.h>
#include <endian.h>
#include <lzma.h>
#include <stdlib.h>
#include <time.h>

#include "qutc/base/codec.h"

#ifndef ELFCOMPRESS_ZLIB
#define ELFCOMPRESS_ZLIB 1
#endif
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum { ZLIB_RATIO_MAX = 1032 };                           // what deflate can reach: more is a lie
static const uint64_t xz_memory_max_bytes = 256ULL << 20; // xz -9 needs 65 MiB

struct qutc_unpack_block {
    struct qutc_unpack_block *next;
    uint8_t data[];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static struct qutc_bytes keep(struct qutc_unpacker *unpacker, struct qutc_unpack_block *block, size_t size)
{
    block->next = unpacker->blocks;
    unpacker->blocks = block;
    unpacker->left_bytes -= size;
    unpacker->used_bytes += size;
    return (struct qutc_bytes){block->data, size};
}

static int unpack_sized(struct qutc_unpacker *unpacker, struct qutc_bytes packed, uint32_t method, uint64_t size,
                        const char *section, struct qutc_bytes *bytes, struct qutc_error *error)
{
    if (method != ELFCOMPRESS_ZLIB && method != ELFCOMPRESS_ZSTD)
        return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 0, "compression method %u", method);
    if (size > unpacker->left_bytes)
        return qutc_fail(error, QUTC_ERR_LIMIT, section, 0, "0x%jx bytes unpacked, 0x%jx allowed", (uintmax_t)size,
                         (uintmax_t)unpacker->left_bytes);
    if (method == ELFCOMPRESS_ZLIB && size / ZLIB_RATIO_MAX > packed.size)
        return qutc_fail(error, QUTC_ERR_COMPRESSION, section, 0, "%zu bytes cannot unpack to 0x%jx", packed.size,
                         (uintmax_t)size);
    struct qutc_unpack_block *block = malloc(sizeof *block + (size_t)size);
    if (!block)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, section, 0, "0x%jx bytes", (uintmax_t)size);
    uint64_t start_ns = now_ns();
    int result =
        (method == ELFCOMPRESS_ZLIB ? qutc_unzlib : qutc_unzstd)(packed, block->data, (size_t)size, section, error);
    unpacker->time_ns += now_ns() - start_ns;
    if (result) {
        free(block);
        unpacker->left_bytes -= size; // the work was done: a file full of such sections must not have it for free
        return -1;
    }
    *bytes = keep(unpacker, block, (size_t)size);
    return 0;
}

static int unpack_compressed(struct qutc_unpacker *unpacker, const struct qutc_elf *elf, const char *section,
                             struct qutc_bytes *bytes, struct qutc_error *error)
{
    struct qutc_cursor cursor = qutc_cursor(*bytes);
    uint32_t method = qutc_read_u32(&cursor);
    if (elf->is_64)
        qutc_cursor_skip(&cursor, 4);
    uint64_t size = qutc_read_uint(&cursor, elf->is_64 ? 8 : 4);
    qutc_cursor_skip(&cursor, elf->is_64 ? 8 : 4);
    if (cursor.failed)
        return qutc_fail(error, QUTC_ERR_TRUNCATED, section, 0, "compression header");
    return unpack_sized(unpacker, (struct qutc_bytes){cursor.at, qutc_cursor_left(&cursor)}, method, size, section,
                        bytes, error);
}

static int unpack_zdebug(struct qutc_unpacker *unpacker, const char *section, struct qutc_bytes *bytes,
                         struct qutc_error *error)
{
    uint64_t size;
    // Tools that found that compressing did not pay left sections of this name as they were.
    if (bytes->size < 4 + sizeof size || memcmp(bytes->data, "ZLIB", 4) != 0)
        return 0;
    memcpy(&size, bytes->data + 4, sizeof size);
    return unpack_sized(unpacker, (struct qutc_bytes){bytes->data + 12, bytes->size - 12}, ELFCOMPRESS_ZLIB,
                        be64toh(size), section, bytes, error);
}

int qutc_unpack_section(struct qutc_unpacker *unpacker, const struct qutc_elf *elf,
                        const struct qutc_elf_section *section, struct qutc_bytes *bytes, struct qutc_error *error)
{
    if (qutc_elf_section_bytes(elf, section, bytes, error))
        return -1;
    if (bytes->size == 0)
        return 0;
    if (section->flags & SHF_COMPRESSED)
        return unpack_compressed(unpacker, elf, section->name, bytes, error);
    if (strncmp(section->name, ".zdebug_", 8) == 0)
        return unpack_zdebug(unpacker, section->name, bytes, error);
    return 0;
}

static int grow(struct qutc_unpack_block **block, size_t *capacity, size_t wanted)
{
    struct qutc_unpack_block *bigger = realloc(*block, sizeof **block + wanted);
    if (!bigger)
        return -1;
    *block = bigger;
    *capacity = wanted;
    return 0;
}

static const char *xz_text(lzma_ret status)
{
    switch (status) {
    case LZMA_MEMLIMIT_ERROR: return "needs more memory than allowed";
    case LZMA_FORMAT_ERROR: return "not xz";
    case LZMA_OPTIONS_ERROR: return "unknown xz options";
    case LZMA_DATA_ERROR: return "corrupt, or its check does not match";
    case LZMA_BUF_ERROR: return "ends too early";
    default: return "liblzma failed";
    }
}

// Runs the decoder to the end of its input, with output growing up to the bound. *block is the caller's to free.
static int run_xz(lzma_stream *stream, uint64_t max_bytes, struct qutc_unpack_block **block, const char *section,
                  struct qutc_error *error)
{
    size_t capacity = 0;
    size_t total = 0;
    size_t next = stream->avail_in * 4 + 4096;
    for (;;) {
        if (total == capacity) {
            // One byte more than allowed: to tell output that just fits from output that does not.
            size_t wanted = next < max_bytes + 1 ? next : (size_t)max_bytes + 1;
            if (wanted <= capacity)
                return qutc_fail(error, QUTC_ERR_LIMIT, section, 0, "more than 0x%jx bytes unpacked",
                                 (uintmax_t)max_bytes);
            if (grow(block, &capacity, wanted))
                return qutc_fail(error, QUTC_ERR_NO_MEMORY, section, 0, "0x%zx bytes", wanted);
            next = capacity * 2;
        }
        stream->next_out = (*block)->data + total;
        stream->avail_out = capacity - total;
        lzma_ret status = lzma_code(stream, LZMA_FINISH);
        total = capacity - stream->avail_out;
        if (status == LZMA_STREAM_END)
            return total > max_bytes ? qutc_fail(error, QUTC_ERR_LIMIT, section, 0, "more than 0x%jx bytes unpacked",
                                                 (uintmax_t)max_bytes)
                                     : 0;
        if (status == LZMA_MEM_ERROR)
            return qutc_fail(error, QUTC_ERR_NO_MEMORY, section, 0, "xz decoder");
        if (status != LZMA_OK)
            return qutc_fail(error, QUTC_ERR_COMPRESSION, section, stream->total_in, "%s", xz_text(status));
    }
}

int qutc_unpack_xz(struct qutc_unpacker *unpacker, struct qutc_bytes packed, const char *section,
                   struct qutc_bytes *bytes, struct qutc_error *error)
{
    // Padding is allowed in multiples of four zeros only; writers pad to whatever suits them. A stream never ends in 0.
    while (packed.size && packed.data[packed.size - 1] == 0)
        packed.size--;
    uint64_t start_ns = now_ns();
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, xz_memory_max_bytes, LZMA_CONCATENATED) != LZMA_OK)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, section, 0, "xz decoder");
    stream.next_in = packed.data;
    stream.avail_in = packed.size;
    struct qutc_unpack_block *block = NULL;
    int result = run_xz(&stream, unpacker->left_bytes, &block, section, error);
    uint64_t total = stream.total_out;
    lzma_end(&stream);
    uint64_t took_ns = now_ns() - start_ns;
    unpacker->time_ns += took_ns;
    unpacker->xz_time_ns += took_ns;
    if (result) {
        free(block);
        return -1;
    }
    *bytes = keep(unpacker, block, (size_t)total);
    return 0;
}

void qutc_unpack_free(struct qutc_unpacker *unpacker)
{
    while (unpacker->blocks) {
        struct qutc_unpack_block *next = unpacker->blocks->next;
        free(unpacker->blocks);
        unpacker->blocks = next;
    }
}
