// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/html.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/utf8_inline.h"

static const char *entity(char byte)
{
    switch (byte) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return UTF8_REPLACEMENT;
    }
}

void report_html_text(struct sink *sink, const char *text)
{
    for (;; text++) {
        size_t plain = base_utf8_plain(text, "<>&\"'");
        sink_bytes(sink, text, plain);
        text += plain;
        if (!*text)
            return;
        sink_text(sink, entity(*text));
        size_t length = base_utf8_sequence(text);
        text += length ? length - 1 : 0;
    }
}

void report_html_count(struct sink *sink, uint64_t value)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, value);
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            sink_text(sink, ",");
        sink_bytes(sink, &digits[i], 1);
    }
}

void report_html_time(struct sink *sink, uint64_t time_ns)
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
