// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include "tracer/report/blob.h"

bool report_deflate(const uint8_t *data, size_t size, struct bytes *packed)
{
    enum { LEVEL = 6, PIECE_BYTES = 1 << 24 }; // zlib counts in 32 bits
    z_stream stream = {0};
    uint8_t out[1 << 14];
    int status = deflateInit(&stream, LEVEL);
    size_t done = 0;
    while (status == Z_OK) {
        if (stream.avail_in == 0 && done < size) {
            size_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
            stream.next_in = (Bytef *)(uintptr_t)(data + done); // which it only reads
            stream.avail_in = (uInt)piece;
            done += piece;
        }
        stream.next_out = out;
        stream.avail_out = sizeof out;
        status = deflate(&stream, done < size ? Z_NO_FLUSH : Z_FINISH);
        report_bytes_add(packed, out, sizeof out - stream.avail_out);
    }
    deflateEnd(&stream);
    if (status == Z_STREAM_END && !packed->has_failed)
        return true;
    bool no_memory = status == Z_MEM_ERROR || packed->has_failed;
    report_bytes_free(packed);
    packed->has_failed = no_memory;
    return false;
}
