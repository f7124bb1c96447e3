// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/html.h"

#include <inttypes.h>
#include <stdio.h>

#include "tracer/export/utf8.h"

static const char *entity(uint8_t byte)
{
    switch (byte) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return byte < ' ' || byte == 0x7f ? UTF8_REPLACEMENT : NULL;
    }
}

void html_text(struct sink *sink, const char *text)
{
    while (*text) {
        size_t size = utf8_sequence(text);
        const char *instead = size == 0 ? UTF8_REPLACEMENT : size == 1 ? entity((uint8_t)*text) : NULL;
        if (instead)
            sink_text(sink, instead);
        else
            sink_bytes(sink, text, size);
        text += size ? size : 1;
    }
}

void html_count(struct sink *sink, uint64_t value)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, value);
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            sink_text(sink, ",");
        sink_bytes(sink, &digits[i], 1);
    }
}

void html_time(struct sink *sink, uint64_t time_ns)
{
    static const struct {
        uint64_t unit_ns;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "µs"}};
    char text[48];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (time_ns < units[i].unit_ns)
            continue;
        snprintf(text, sizeof text, "%.3f %s", (double)time_ns / (double)units[i].unit_ns, units[i].name);
        sink_text(sink, text);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64 " ns", time_ns);
    sink_text(sink, text);
}
