// SPDX-License-Identifier: Apache-2.0
// Lines of instructions, in the three forms, and tables that are cut.
#include <stdint.h>

#include "libqut/cpython/cpython.h"
#include "tests/support/tap.h"

#define LINE(form, table, first, offset) cpython_line_at(form, table, sizeof(table), first, offset)

TEST(deltas)
{
    // def at 10; 6 bytes of line 11, 4 of line 13, then 12 again
    static const uint8_t table[] = {0, 1, 6, 2, 4, 0xff};
    CHECK(LINE(CPYTHON_LINES_DELTAS, table, 10, 0) == 11, "%u", LINE(CPYTHON_LINES_DELTAS, table, 10, 0));
    CHECK(LINE(CPYTHON_LINES_DELTAS, table, 10, 5) == 11, "%u", LINE(CPYTHON_LINES_DELTAS, table, 10, 5));
    CHECK(LINE(CPYTHON_LINES_DELTAS, table, 10, 6) == 13, "%u", LINE(CPYTHON_LINES_DELTAS, table, 10, 6));
    CHECK(LINE(CPYTHON_LINES_DELTAS, table, 10, 10) == 12, "%u", LINE(CPYTHON_LINES_DELTAS, table, 10, 10));
    CHECK(cpython_line_at(CPYTHON_LINES_DELTAS, table, 0, 10, 99) == 10, "an empty table: all on the first line%s", "");
}

TEST(ranges)
{
    static const uint8_t table[] = {4, 1, 2, 0x80, 6, 2};
    CHECK(LINE(CPYTHON_LINES_RANGES, table, 10, 2) == 11, "%u", LINE(CPYTHON_LINES_RANGES, table, 10, 2));
    CHECK(LINE(CPYTHON_LINES_RANGES, table, 10, 4) == 0, "none there: %u", LINE(CPYTHON_LINES_RANGES, table, 10, 4));
    CHECK(LINE(CPYTHON_LINES_RANGES, table, 10, 6) == 13, "%u", LINE(CPYTHON_LINES_RANGES, table, 10, 6));
    CHECK(LINE(CPYTHON_LINES_RANGES, table, 10, 12) == 0, "behind it: %u", LINE(CPYTHON_LINES_RANGES, table, 10, 12));
}

// short (line stays), one line further (form 11), without columns (+1 by a signed number), long (-2), none
static const uint8_t places[] = {
    0x80 | 0 << 3 | 1,  0x12,                   // 2 units, line 10
    0x80 | 11 << 3 | 0, 1,    2,                // 1 unit, line 11
    0x80 | 13 << 3 | 2, 0x02,                   // 3 units, line 12
    0x80 | 14 << 3 | 0, 0x05, 0x00, 0x01, 0x02, // 1 unit, line 10
    0x80 | 15 << 3 | 0,                         // 1 unit, no line
};

TEST(places_)
{
    static const uint32_t expected[] = {10, 10, 11, 12, 12, 12, 10, 0, 0};
    for (uint32_t unit = 0; unit < sizeof expected / sizeof *expected; unit++) {
        uint32_t line = LINE(CPYTHON_LINES_PLACES, places, 10, unit * 2);
        CHECK(line == expected[unit], "unit %u: %u", unit, line);
    }
}

TEST(cut_tables_say_nothing_wrong)
{
    for (size_t size = 0; size <= sizeof places; size++)
        for (uint32_t unit = 0; unit < 12; unit++) {
            uint32_t whole = LINE(CPYTHON_LINES_PLACES, places, 10, unit * 2);
            uint32_t line = cpython_line_at(CPYTHON_LINES_PLACES, places, size, 10, unit * 2);
            CHECK(line == whole || line == 0, "%zu bytes, unit %u: %u", size, unit, line);
        }
}

TEST(any_bytes)
{
    uint8_t table[64];
    uint32_t random = 1;
    for (unsigned round = 0; round < 200000; round++) {
        for (size_t i = 0; i < sizeof table; i++)
            table[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        for (int form = CPYTHON_LINES_DELTAS; form <= CPYTHON_LINES_PLACES; form++)
            cpython_line_at((enum cpython_lines)form, table, random % sizeof table, INT32_MAX, random >> 8);
    }
    CHECK(true, "no crash%s", "");
}

int main(void)
{
    RUN(deltas);
    RUN(ranges);
    RUN(places_);
    RUN(cut_tables_say_nothing_wrong);
    RUN(any_bytes);
    return tap_finish();
}
