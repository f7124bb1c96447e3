// SPDX-License-Identifier: Apache-2.0
// Line by line pure_decode.c, so that the two differ in nothing but the reads.
#include "bench/compile/checked_decode.h"

#include <string.h>

#include "base/cursor_inline.h"

enum { REGISTERS = 17, DEPTH = 8 };

struct cie {
    uint64_t code_align;
    int64_t data_align;
    unsigned pointer_size;
    struct base_bytes program;
};

struct state {
    uint64_t cfa_reg;
    int64_t cfa_offset;
    int32_t saved[REGISTERS]; // 0: not saved
};

static void save(struct state *s, uint64_t reg, int64_t offset)
{
    if (reg < REGISTERS)
        s->saved[reg] = (int32_t)offset;
}

static void end_row(const struct state *s, uint64_t pc, struct pure_decode_counts *counts)
{
    counts->rows++;
    counts->checksum = counts->checksum * 31 + (pc ^ s->cfa_reg ^ (uint64_t)s->cfa_offset ^ (uint64_t)s->saved[6]);
}

static bool run(struct base_cursor c, const struct cie *cie, struct state *s, const struct state *initial, uint64_t pc,
                struct pure_decode_counts *counts)
{
    struct state stack[DEPTH];
    unsigned depth = 0;
    uint64_t reg, delta;
    while (base_cursor_left(&c)) {
        uint8_t op = base_read_u8(&c);
        counts->instructions++;
        switch (op >> 6) {
        case 1: delta = op & 0x3f; goto moved;
        case 2: save(s, op & 0x3f, (int64_t)base_read_uleb(&c) * cie->data_align); continue;
        case 3: save(s, op & 0x3f, (op & 0x3f) < REGISTERS ? initial->saved[op & 0x3f] : 0); continue;
        default: break;
        }
        switch (op) {
        case 0x02: delta = base_read_u8(&c); goto moved;
        case 0x03: delta = base_read_u16(&c); goto moved;
        case 0x04: delta = base_read_u32(&c); goto moved;
        case 0x05:
            reg = base_read_uleb(&c);
            save(s, reg, (int64_t)base_read_uleb(&c) * cie->data_align);
            continue;
        case 0x06:
            reg = base_read_uleb(&c);
            save(s, reg, reg < REGISTERS ? initial->saved[reg] : 0);
            continue;
        case 0x07:
        case 0x08: save(s, base_read_uleb(&c), 0); continue;
        case 0x09:
            reg = base_read_uleb(&c);
            base_read_uleb(&c);
            save(s, reg, 0);
            continue;
        case 0x0a:
            if (depth < DEPTH)
                stack[depth++] = *s;
            continue;
        case 0x0b:
            if (depth)
                *s = stack[--depth];
            continue;
        case 0x0c:
            s->cfa_reg = base_read_uleb(&c);
            s->cfa_offset = (int64_t)base_read_uleb(&c);
            continue;
        case 0x0d: s->cfa_reg = base_read_uleb(&c); continue;
        case 0x0e: s->cfa_offset = (int64_t)base_read_uleb(&c); continue;
        case 0x0f:
            base_cursor_skip(&c, base_read_uleb(&c));
            s->cfa_reg = REGISTERS;
            continue;
        case 0x10:
        case 0x16:
            base_read_uleb(&c);
            base_cursor_skip(&c, base_read_uleb(&c));
            continue;
        case 0x11:
            reg = base_read_uleb(&c);
            save(s, reg, base_read_sleb(&c) * cie->data_align);
            continue;
        case 0x12:
            s->cfa_reg = base_read_uleb(&c);
            s->cfa_offset = base_read_sleb(&c) * cie->data_align;
            continue;
        case 0x13: s->cfa_offset = base_read_sleb(&c) * cie->data_align; continue;
        case 0x14:
            base_read_uleb(&c);
            base_read_uleb(&c);
            continue;
        case 0x2e: base_read_uleb(&c); continue;
        default: continue;
        }
    moved:
        end_row(s, pc, counts);
        pc += delta * cie->code_align;
    }
    if (counts->fdes)
        end_row(s, pc, counts);
    return !c.failed;
}

// Bytes of a pointer, 0 where pure_decode would not know.
static unsigned pointer_bytes(uint8_t encoding)
{
    unsigned format = encoding & 0x0f;
    return format == 0x0b ? 4 : format == 0x00 || format == 0x0c || format == 0x04 ? 8 : 0;
}

static bool parse_cie(struct base_cursor c, struct cie *cie)
{
    *cie = (struct cie){.pointer_size = 8};
    if (base_read_u8(&c) != 1)
        return false;
    const char *letters = base_read_string(&c);
    cie->code_align = base_read_uleb(&c);
    cie->data_align = base_read_sleb(&c);
    base_read_u8(&c); // return address column
    if (!letters || *letters != 'z')
        return false;
    struct base_cursor data = base_cursor(base_read_bytes(&c, base_read_uleb(&c)));
    for (letters++; *letters; letters++) {
        if (*letters == 'R')
            cie->pointer_size = pointer_bytes(base_read_u8(&data));
        else if (*letters == 'L')
            base_read_u8(&data);
        else if (*letters == 'P')
            base_cursor_skip(&data, pointer_bytes(base_read_u8(&data)));
        else if (*letters != 'S')
            return false;
    }
    cie->program = base_read_bytes(&c, base_cursor_left(&c));
    return !c.failed && !data.failed && cie->pointer_size;
}

bool checked_decode(const uint8_t *eh_frame, size_t size, struct pure_decode_counts *counts)
{
    memset(counts, 0, sizeof *counts);
    struct base_cursor section = base_cursor((struct base_bytes){eh_frame, size});
    uint64_t cie_offset = UINT64_MAX;
    struct cie cie = {0};
    struct state initial = {0};
    while (base_cursor_left(&section) > 4) {
        uint32_t length = base_read_u32(&section);
        uint64_t id_offset = base_cursor_offset(&section);
        struct base_cursor record = base_cursor(base_read_bytes(&section, length));
        if (section.failed)
            return false;
        if (length == 0)
            continue;
        uint32_t id = base_read_u32(&record);
        if (id == 0)
            continue;
        if (id > id_offset)
            return false;
        if (id_offset - id != cie_offset) {
            cie_offset = id_offset - id;
            struct base_cursor at = base_cursor((struct base_bytes){eh_frame, size});
            base_cursor_seek(&at, cie_offset);
            struct base_cursor cie_record = base_cursor(base_read_bytes(&at, base_read_u32(&at)));
            base_cursor_skip(&cie_record, 4);
            if (at.failed || !parse_cie(cie_record, &cie))
                return false;
            memset(&initial, 0, sizeof initial);
            uint64_t fdes = counts->fdes;
            counts->fdes = 0; // a CIE's own instructions make no row
            bool good = run(base_cursor(cie.program), &cie, &initial, &initial, 0, counts);
            counts->fdes = fdes;
            if (!good)
                return false;
        }
        uint64_t start = base_read_u32(&record);
        base_cursor_skip(&record, 2 * cie.pointer_size - 4);
        base_cursor_skip(&record, base_read_uleb(&record));
        struct state state = initial;
        counts->fdes++;
        if (record.failed || !run(record, &cie, &state, &initial, start, counts))
            return false;
    }
    return true;
}
