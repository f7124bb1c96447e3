// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/json.h"
#include "base/utf8_inline.h"
#include "tracer/export/sink/inside.h"

enum { DIGITS_MAX = 20, DECIMALS_MAX = 18 };

void sink_text(struct sink *sink, const char *text)
{
    sink_bytes(sink, text, strlen(text));
}

// In front of `end`. Returns the first digit.
static char *put_digits(char *end, uint64_t value, unsigned least_digits)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
        least_digits -= least_digits > 0;
    } while (value || least_digits);
    return end;
}

void sink_number(struct sink *sink, uint64_t value)
{
    char text[DIGITS_MAX];
    char *first = put_digits(text + sizeof text, value, 1);
    sink_bytes(sink, first, (size_t)(text + sizeof text - first));
}

void sink_fixed(struct sink *sink, int64_t value, unsigned decimals)
{
    if (decimals > DECIMALS_MAX)
        decimals = DECIMALS_MAX;
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    char text[2 * DIGITS_MAX + 2];
    char *first = text + sizeof text;
    if (decimals) {
        first = put_digits(first, size % unit, decimals);
        *--first = '.';
    }
    first = put_digits(first, size / unit, 1);
    if (value < 0)
        *--first = '-';
    sink_bytes(sink, first, (size_t)(text + sizeof text - first));
}

static void put_in_sink(void *sink, const void *bytes, size_t size)
{
    sink_bytes(sink, bytes, size);
}

// '<' too is written as a number: JSON may stand in a page, which "</script>" would end.
void sink_json_string(struct sink *sink, const char *text)
{
    base_json_quote(put_in_sink, sink, text, "\"\\<", UTF8_REPLACEMENT);
}
