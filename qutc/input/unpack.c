// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/unpack.h"

#include <elf.h>
#include <endian.h>
#include <lzma.h>
#include <stdlib.h>

#include "base/clock_inline.h"
#include "base/codec.h"
#include "formats/qut_checksum_inline.h"

#ifndef ELFCOMPRESS_ZLIB
#define ELFCOMPRESS_ZLIB 1
#endif
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum { ZLIB_RATIO_MAX = 1032 };                           // what deflate can reach: more is a lie
static const uint64_t xz_memory_max_bytes = 256ULL << 20; // xz -9 needs 65 MiB

struct input_unpack_block {
    struct input_unpack_block *next;
    uint8_t data[];
};

static struct base_bytes keep(struct input_unpacker *unpacker, struct input_unpack_block *block, size_t size)
{
    block->next = unpacker->blocks;
    unpacker->blocks = block;
    unpacker->left_bytes -= size;
    unpacker->used_bytes += size;
    return (struct base_bytes){block->data, size};
}

static int unpack_sized(struct input_unpacker *unpacker, struct base_bytes packed, uint32_t method, uint64_t size,
                        const char *section, struct base_bytes *bytes, struct base_error *error)
{
    if (method != ELFCOMPRESS_ZLIB && method != ELFCOMPRESS_ZSTD)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, 0, "compression method %u", method);
    if (size > unpacker->left_bytes)
        return base_fail(error, BASE_ERR_LIMIT, section, 0, "0x%jx bytes unpacked, 0x%jx allowed", (uintmax_t)size,
                         (uintmax_t)unpacker->left_bytes);
    if (method == ELFCOMPRESS_ZLIB && size / ZLIB_RATIO_MAX > packed.size)
        return base_fail(error, BASE_ERR_COMPRESSION, section, 0, "%zu bytes cannot unpack to 0x%jx", packed.size,
                         (uintmax_t)size);
    struct input_unpack_block *block = malloc(sizeof *block + (size_t)size);
    if (!block)
        return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "0x%jx bytes", (uintmax_t)size);
    uint64_t start_ns = base_clock_now_ns();
    int result =
        (method == ELFCOMPRESS_ZLIB ? base_unzlib : base_unzstd)(packed, block->data, (size_t)size, section, error);
    unpacker->time_ns += base_clock_now_ns() - start_ns;
    if (result) {
        free(block);
        unpacker->left_bytes -= size; // the work was done: a file full of such sections must not have it for free
        return -1;
    }
    *bytes = keep(unpacker, block, (size_t)size);
    return 0;
}

static int unpack_compressed(struct input_unpacker *unpacker, const struct input_elf *elf, const char *section,
                             struct base_bytes *bytes, struct base_error *error)
{
    struct base_cursor cursor = base_cursor(*bytes);
    uint32_t method = base_read_u32(&cursor);
    if (elf->is_64)
        base_cursor_skip(&cursor, 4);
    uint64_t size = base_read_uint(&cursor, elf->is_64 ? 8 : 4);
    base_cursor_skip(&cursor, elf->is_64 ? 8 : 4);
    if (cursor.failed)
        return base_fail(error, BASE_ERR_TRUNCATED, section, 0, "compression header");
    return unpack_sized(unpacker, (struct base_bytes){cursor.at, base_cursor_left(&cursor)}, method, size, section,
                        bytes, error);
}

static int unpack_zdebug(struct input_unpacker *unpacker, const char *section, struct base_bytes *bytes,
                         struct base_error *error)
{
    uint64_t size;
    // Tools that found that compressing did not pay left sections of this name as they were.
    if (bytes->size < 4 + sizeof size || memcmp(bytes->data, "ZLIB", 4) != 0)
        return 0;
    memcpy(&size, bytes->data + 4, sizeof size);
    return unpack_sized(unpacker, (struct base_bytes){bytes->data + 12, bytes->size - 12}, ELFCOMPRESS_ZLIB,
                        be64toh(size), section, bytes, error);
}

int input_unpack_section(struct input_unpacker *unpacker, const struct input_elf *elf,
                         const struct input_elf_section *section, struct base_bytes *bytes, struct base_error *error)
{
    if (input_elf_section_bytes(elf, section, bytes, error))
        return -1;
    if (bytes->size == 0)
        return 0;
    if (section->flags & SHF_COMPRESSED)
        return unpack_compressed(unpacker, elf, section->name, bytes, error);
    if (strncmp(section->name, ".zdebug_", 8) == 0)
        return unpack_zdebug(unpacker, section->name, bytes, error);
    return 0;
}

static int grow(struct input_unpack_block **block, size_t *capacity, size_t wanted)
{
    struct input_unpack_block *bigger = realloc(*block, sizeof **block + wanted);
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
static int run_xz(lzma_stream *stream, uint64_t max_bytes, struct input_unpack_block **block, const char *section,
                  struct base_error *error)
{
    size_t capacity = 0;
    size_t total = 0;
    size_t next = stream->avail_in * 4 + 4096;
    for (;;) {
        if (total == capacity) {
            // One byte more than allowed: to tell output that just fits from output that does not.
            size_t wanted = next < max_bytes + 1 ? next : (size_t)max_bytes + 1;
            if (wanted <= capacity)
                return base_fail(error, BASE_ERR_LIMIT, section, 0, "more than 0x%jx bytes unpacked",
                                 (uintmax_t)max_bytes);
            if (grow(block, &capacity, wanted))
                return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "0x%zx bytes", wanted);
            next = capacity * 2;
        }
        stream->next_out = (*block)->data + total;
        stream->avail_out = capacity - total;
        lzma_ret status = lzma_code(stream, LZMA_FINISH);
        total = capacity - stream->avail_out;
        if (status == LZMA_STREAM_END)
            return total > max_bytes ? base_fail(error, BASE_ERR_LIMIT, section, 0, "more than 0x%jx bytes unpacked",
                                                 (uintmax_t)max_bytes)
                                     : 0;
        if (status == LZMA_MEM_ERROR)
            return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "xz decoder");
        if (status != LZMA_OK)
            return base_fail(error, BASE_ERR_COMPRESSION, section, stream->total_in, "%s", xz_text(status));
    }
}

int input_unpack_xz(struct input_unpacker *unpacker, struct base_bytes packed, const char *section,
                    struct base_bytes *bytes, struct base_error *error)
{
    // Padding is allowed in multiples of four zeros only; writers pad to whatever suits them. A stream never ends in 0.
    while (packed.size && packed.data[packed.size - 1] == 0)
        packed.size--;
    uint64_t start_ns = base_clock_now_ns();
    lzma_stream stream = LZMA_STREAM_INIT;
    const uint32_t flags = LZMA_CONCATENATED | (QUT_CHECKSUMS_COUNT ? 0 : LZMA_IGNORE_CHECK);
    if (lzma_stream_decoder(&stream, xz_memory_max_bytes, flags) != LZMA_OK)
        return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "xz decoder");
    stream.next_in = packed.data;
    stream.avail_in = packed.size;
    struct input_unpack_block *block = NULL;
    int result = run_xz(&stream, unpacker->left_bytes, &block, section, error);
    uint64_t total = stream.total_out;
    lzma_end(&stream);
    uint64_t took_ns = base_clock_now_ns() - start_ns;
    unpacker->time_ns += took_ns;
    unpacker->xz_time_ns += took_ns;
    if (result) {
        free(block);
        return -1;
    }
    *bytes = keep(unpacker, block, (size_t)total);
    return 0;
}

void input_unpack_free(struct input_unpacker *unpacker)
{
    while (unpacker->blocks) {
        struct input_unpack_block *next = unpacker->blocks->next;
        free(unpacker->blocks);
        unpacker->blocks = next;
    }
}
