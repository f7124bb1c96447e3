// SPDX-License-Identifier: Apache-2.0
// Lines of instructions. A table is read while a frame holds its function, when one of its instructions is first met;
// then the answer is in one word, which any thread may replace by another one's.
#include <string.h>

#include "libqut/modules/own_memory.h"
#include "libqut/python/inside.h"

enum { KNOWN_BITS = 14, UNIT_BITS = 20, NUMBER_SHIFT = CPYTHON_LINE_BITS + UNIT_BITS };
// Numbers are given one after the other: what few functions ran is in few pages. Odd, more than most functions' units
// that are met.
enum { NUMBER_STRIDE = 61, LINES_AT_ONCE = 512 };

// number | unit | line; 0: none. Beyond what a word has room for, nothing is remembered.
static _Atomic uint64_t *known_lines;

bool python_lines_prepare(void)
{
    if (!known_lines)
        known_lines = os_reserve(sizeof *known_lines << KNOWN_BITS);
    return known_lines != NULL;
}

void python_lines_forget(void)
{
    if (known_lines)
        os_free_pages(known_lines, sizeof *known_lines << KNOWN_BITS);
    known_lines = NULL;
}

static uint32_t read_line(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                          uint32_t offset_bytes)
{
    const struct cpython_layout *layout = &known->runtime.layout;
    const size_t head = layout->bytes_data;
    const uint8_t *table = room->table + head;
    uint64_t length;
    // Mostly all of it. A table may be empty, and then all is on the first line.
    const size_t got = os_read_self((uintptr_t)code->lines, room->table, LINES_AT_ONCE);
    if (got < head || head < layout->object_size + sizeof length)
        return 0;
    memcpy(&length, room->table + layout->object_size, sizeof length);
    if (length > sizeof room->table)
        return 0;
    if (length > got - head) {
        table = room->table;
        if (!elf_art_read(&modules_own_memory, code->lines + head, room->table, (size_t)length))
            return 0;
    }
    uint32_t line =
        cpython_line_at((enum cpython_lines)layout->lines, table, (size_t)length, code->first_line, offset_bytes);
    return line < 1u << CPYTHON_LINE_BITS ? line : 0;
}

uint32_t python_line_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                        uint32_t number, uint64_t instruction)
{
    uint64_t offset = instruction;
    if (known->runtime.layout.form != CPYTHON_FRAME_OBJECTS)
        offset = instruction > code->instructions ? instruction - code->instructions : 0; // none has run yet: 0
    if (offset >= code->instruction_bytes)
        return 0;
    uint64_t unit = offset / 2;
    if (unit >> UNIT_BITS)
        return read_line(known, room, code, (uint32_t)offset);
    uint64_t key = (uint64_t)number << UNIT_BITS | unit;
    _Atomic uint64_t *word = &known_lines[((uint64_t)number * NUMBER_STRIDE + unit) & ((1u << KNOWN_BITS) - 1)];
    uint64_t there = atomic_load_explicit(word, memory_order_relaxed);
    if (there >> CPYTHON_LINE_BITS == key)
        return (uint32_t)there & ((1u << CPYTHON_LINE_BITS) - 1);
    uint32_t line = read_line(known, room, code, (uint32_t)offset);
    atomic_store_explicit(word, key << CPYTHON_LINE_BITS | line, memory_order_relaxed);
    return line;
}
static_assert((uint64_t)PYTHON_FUNCTIONS_MAX << NUMBER_SHIFT >> NUMBER_SHIFT == PYTHON_FUNCTIONS_MAX,
              "a word has room");
