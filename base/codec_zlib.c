// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include "base/codec.h"

enum { GZIP_WINDOW = 15 + 16 }; // + 16: with the header of gzip

static const size_t chunk_bytes = (size_t)1 << 30; // zlib counts in 32 bits

static int inflate_all(z_stream *stream, struct base_bytes packed, uint8_t *to, size_t size)
{
    const uint8_t *packed_end = packed.data + packed.size;
    const uint8_t *end = to + size;
    int status = Z_OK;
    while (status == Z_OK) {
        size_t in = (size_t)(packed_end - stream->next_in);
        size_t out = (size_t)(end - stream->next_out);
        stream->avail_in = (uInt)(in < chunk_bytes ? in : chunk_bytes);
        stream->avail_out = (uInt)(out < chunk_bytes ? out : chunk_bytes);
        status = inflate(stream, Z_NO_FLUSH);
        // Linkers that merge compressed sections put one stream after the other.
        if (status == Z_STREAM_END && stream->next_out < end && stream->next_in < packed_end)
            status = inflateReset(stream);
    }
    return status == Z_STREAM_END && stream->next_out < end ? Z_BUF_ERROR : status;
}

static int unpack(int window, struct base_bytes packed, uint8_t *to, size_t size, const char *section,
                  struct base_error *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed.data, .next_out = to};
    int status = inflateInit2(&stream, window);
    if (status == Z_OK) {
        status = inflate_all(&stream, packed, to, size);
        inflateEnd(&stream);
    }
    if (status == Z_MEM_ERROR)
        return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "zlib decoder");
    if (status != Z_STREAM_END)
        return base_fail(error, BASE_ERR_COMPRESSION, section, 0, "zlib data does not unpack to 0x%zx bytes", size);
    return 0;
}

int base_unzlib(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    return unpack(MAX_WBITS, packed, to, size, section, error);
}

int base_ungzip(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    return unpack(GZIP_WINDOW, packed, to, size, section, error);
}
