// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/blob.h"

enum { BLOCK_BYTES = 192 * 1024, LINE_BYTES = 96 }; // of bytes, before base64: multiples of 3

static void write_line(struct sink *sink, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char line[LINE_BYTES / 3 * 4 + 1];
    size_t length = 0;
    for (size_t i = 0; i < size; i += 3) {
        unsigned second = i + 1 < size ? data[i + 1] : 0, third = i + 2 < size ? data[i + 2] : 0;
        unsigned group = (unsigned)data[i] << 16 | second << 8 | third;
        line[length++] = digits[group >> 18];
        line[length++] = digits[group >> 12 & 63];
        line[length++] = '=';
        line[length++] = '=';
        if (i + 1 < size)
            line[length - 2] = digits[group >> 6 & 63];
        if (i + 2 < size)
            line[length - 1] = digits[group & 63];
    }
    line[length++] = '\n';
    sink_bytes(sink, line, length);
}

void report_blob(struct sink *sink, const uint8_t *data, size_t size)
{
    struct bytes packed = {0};
    bool is_packed = report_deflate(data, size, &packed);
    if (packed.has_failed) {
        sink_no_memory(sink);
        return;
    }
    if (is_packed) {
        data = packed.items;
        size = packed.count;
    }
    for (size_t block = 0; block < size; block += BLOCK_BYTES) {
        sink_text(sink, "<script type=\"application/octet-stream\" class=\"data\" data-packing=\"");
        sink_text(sink, is_packed ? "deflate\">\n" : "none\">\n");
        size_t end = size - block < BLOCK_BYTES ? size : block + BLOCK_BYTES;
        for (size_t i = block; i < end; i += LINE_BYTES)
            write_line(sink, data + i, end - i < LINE_BYTES ? end - i : LINE_BYTES);
        sink_text(sink, "</script>\n");
    }
    report_bytes_free(&packed);
}
