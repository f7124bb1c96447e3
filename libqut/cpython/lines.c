// SPDX-License-Identifier: Apache-2.0
// Lines of instructions, in the three forms that code objects have had. A table that ends in the middle of something
// says nothing of what comes after.
#include "libqut/cpython/cpython.h"

enum { UNIT_BYTES = 2, NO_LINE = -128, PLACE_NONE = 15, PLACE_LONG = 14, PLACE_NO_COLUMNS = 13, PLACE_ONE_LINE = 10 };

static uint32_t sound(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

// Pairs: so many bytes further on, so many lines further down.
static uint32_t by_deltas(const uint8_t *table, size_t size, int64_t line, uint32_t offset)
{
    uint32_t at = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return sound(line);
}

// Pairs: so many bytes have the line that is so many further down, or none.
static uint32_t by_ranges(const uint8_t *table, size_t size, int64_t line, uint32_t offset)
{
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int delta = (int8_t)table[i + 1];
        line += delta == NO_LINE ? 0 : delta;
        end += table[i];
        if (end > offset)
            return delta == NO_LINE ? 0 : sound(line);
    }
    return 0;
}

// Six bits a byte, the lowest first; bit 6: there is more.
static bool read_number(const uint8_t *table, size_t size, size_t *at, uint32_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < size && shift < 30; shift += 6) {
        uint8_t byte = table[(*at)++];
        *value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            return true;
    }
    return false;
}

static int64_t signed_of(uint32_t value)
{
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

// How many lines further down; the entry's columns are left unread. False: the table ends here.
static bool line_delta(const uint8_t *table, size_t size, size_t *at, unsigned code, int64_t *delta)
{
    uint32_t value;
    *delta = 0;
    if (code == PLACE_NONE)
        return true;
    if (code >= PLACE_NO_COLUMNS) {
        if (!read_number(table, size, at, &value))
            return false;
        *delta = signed_of(value);
    } else if (code >= PLACE_ONE_LINE) {
        *delta = (int64_t)code - PLACE_ONE_LINE;
    }
    return true;
}

// Entries: a byte of the place's form and of how many units have it, then the place, in bytes without bit 7.
static uint32_t by_places(const uint8_t *table, size_t size, int64_t line, uint32_t offset)
{
    uint64_t end = 0;
    for (size_t at = 0; at < size;) {
        uint8_t first = table[at++];
        int64_t delta;
        unsigned code = first >> 3 & 15;
        if (!(first & 128) || !line_delta(table, size, &at, code, &delta))
            return 0;
        line += delta;
        end += ((uint64_t)(first & 7) + 1) * UNIT_BYTES;
        if (end > offset)
            return code == PLACE_NONE ? 0 : sound(line);
        while (at < size && !(table[at] & 128))
            at++;
    }
    return 0;
}

uint32_t cpython_line_at(enum cpython_lines form, const uint8_t *table, size_t table_bytes, int32_t first_line,
                         uint32_t offset_bytes)
{
    switch (form) {
    case CPYTHON_LINES_DELTAS: return by_deltas(table, table_bytes, first_line, offset_bytes);
    case CPYTHON_LINES_RANGES: return by_ranges(table, table_bytes, first_line, offset_bytes);
    case CPYTHON_LINES_PLACES: return by_places(table, table_bytes, first_line, offset_bytes);
    }
    return 0;
}
