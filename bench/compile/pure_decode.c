// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/pure_decode.h"

#include <string.h>

enum { REGISTERS = 17, DEPTH = 8 };

struct cie {
    uint64_t code_align;
    int64_t data_align;
    unsigned pointer_size;
    const uint8_t *program, *end;
};

struct state {
    uint64_t cfa_reg;
    int64_t cfa_offset;
    int32_t saved[REGISTERS]; // 0: not saved
};

static uint32_t u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, 4);
    return v;
}

static uint64_t uleb(const uint8_t **at)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return v;
}

static int64_t sleb(const uint8_t **at)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        v |= ~(uint64_t)0 << shift;
    return (int64_t)v;
}

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

static void run(const uint8_t *at, const uint8_t *end, const struct cie *cie, struct state *s,
                const struct state *initial, uint64_t pc, struct pure_decode_counts *counts)
{
    struct state stack[DEPTH];
    unsigned depth = 0;
    uint64_t reg, size, delta;
    while (at < end) {
        uint8_t op = *at++;
        counts->instructions++;
        switch (op >> 6) {
        case 1: delta = op & 0x3f; goto moved;
        case 2: save(s, op & 0x3f, (int64_t)uleb(&at) * cie->data_align); continue;
        case 3: s->saved[op & 0x1f] = initial->saved[op & 0x1f]; continue;
        default: break;
        }
        switch (op) {
        case 0x02: delta = *at++; goto moved;
        case 0x03:
            delta = (uint64_t)at[0] | (uint64_t)at[1] << 8;
            at += 2;
            goto moved;
        case 0x04:
            delta = u32(at);
            at += 4;
            goto moved;
        case 0x05:
            reg = uleb(&at);
            save(s, reg, (int64_t)uleb(&at) * cie->data_align);
            continue;
        case 0x06:
            reg = uleb(&at);
            save(s, reg, reg < REGISTERS ? initial->saved[reg] : 0);
            continue;
        case 0x07:
        case 0x08: save(s, uleb(&at), 0); continue;
        case 0x09:
            reg = uleb(&at);
            uleb(&at);
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
            s->cfa_reg = uleb(&at);
            s->cfa_offset = (int64_t)uleb(&at);
            continue;
        case 0x0d: s->cfa_reg = uleb(&at); continue;
        case 0x0e: s->cfa_offset = (int64_t)uleb(&at); continue;
        case 0x0f:
            size = uleb(&at);
            at += size;
            s->cfa_reg = REGISTERS;
            continue;
        case 0x10:
        case 0x16:
            uleb(&at);
            size = uleb(&at);
            at += size;
            continue;
        case 0x11:
            reg = uleb(&at);
            save(s, reg, sleb(&at) * cie->data_align);
            continue;
        case 0x12:
            s->cfa_reg = uleb(&at);
            s->cfa_offset = sleb(&at) * cie->data_align;
            continue;
        case 0x13: s->cfa_offset = sleb(&at) * cie->data_align; continue;
        case 0x14:
            uleb(&at);
            uleb(&at);
            continue;
        case 0x2e: uleb(&at); continue;
        default: continue;
        }
    moved:
        end_row(s, pc, counts);
        pc += delta * cie->code_align;
    }
    if (counts->fdes)
        end_row(s, pc, counts);
}

static struct cie parse_cie(const uint8_t *at, const uint8_t *end)
{
    struct cie cie = {.pointer_size = 8, .end = end};
    at++; // version 1
    const char *letters = (const char *)at;
    at += strlen(letters) + 1;
    cie.code_align = uleb(&at);
    cie.data_align = sleb(&at);
    at++; // return address column
    if (*letters == 'z') {
        uint64_t size = uleb(&at);
        const uint8_t *data = at;
        for (letters++; *letters; letters++) {
            if (*letters == 'R')
                cie.pointer_size = (*data++ & 0x0f) == 0x0b ? 4 : 8;
            else if (*letters == 'L')
                data++;
            else if (*letters == 'P')
                data += 1 + ((*data & 0x0f) == 0x0b ? 4 : 8);
        }
        at += size;
    }
    cie.program = at;
    return cie;
}

void pure_decode(const uint8_t *eh_frame, size_t size, struct pure_decode_counts *counts)
{
    memset(counts, 0, sizeof *counts);
    const uint8_t *at = eh_frame, *end = eh_frame + size;
    const uint8_t *cie_at = NULL;
    struct cie cie = {0};
    struct state initial = {0};
    while (at + 4 < end) {
        uint32_t length = u32(at);
        const uint8_t *id_at = at + 4;
        at = id_at + length;
        if (length == 0)
            continue;
        uint32_t id = u32(id_at);
        if (id == 0)
            continue;
        if (id_at - id != cie_at) {
            cie_at = id_at - id;
            cie = parse_cie(cie_at + 8, cie_at + 4 + u32(cie_at));
            memset(&initial, 0, sizeof initial);
            uint64_t fdes = counts->fdes;
            counts->fdes = 0; // a CIE's own instructions make no row
            run(cie.program, cie.end, &cie, &initial, &initial, 0, counts);
            counts->fdes = fdes;
        }
        const uint8_t *p = id_at + 4;
        uint64_t start = u32(p);
        p += 2 * cie.pointer_size;
        uint64_t augmentation = uleb(&p);
        p += augmentation;
        struct state state = initial;
        counts->fdes++;
        run(p, at, &cie, &state, &initial, start, counts);
    }
}
