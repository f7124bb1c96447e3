// SPDX-License-Identifier: Apache-2.0
// The instructions work on a virtual stack pointer, vsp, which is sp at first, and whose last value is the caller's
// sp. Run symbolically, vsp is at all times `base + offset`, and so is the address of every popped register; the rule
// is what these amount to when the last value of vsp is called the CFA.
#include "qutc/cfi/ehabi.h"

#include "qutc/cfi/rule_set.h"

enum {
    CORE_REGISTERS = 16,
    REG_SP = 13,
    REG_LR = 14,
    REG_PC = 15,
    INTERRUPTED_CONTEXT = 1 << REG_SP | 1 << REG_LR | 1 << REG_PC,
    VFP_REGISTERS = 32,
    FSTMX_REGISTERS = 16, // FSTMX is older than d16-d31
    WMMX_REGISTERS = 16,
    WORD_BYTES = 4,
    DOUBLE_BYTES = 8,
};

// An address as a value of this frame's registers:
//   !deref: reg + offset
//    deref: *(reg + slot_offset) + offset
struct address {
    bool deref;
    uint8_t reg;
    int64_t slot_offset_bytes;
    int64_t offset_bytes;
};

struct decoder {
    struct base_cursor code;
    struct address vsp;
    struct address slot[CORE_REGISTERS]; // where a register in `popped` was popped from, the last time
    uint16_t popped;                     // bit per register
    bool ra_signed;
    bool finished;
    enum qut_refusal refusal;
};

static void refuse(struct decoder *d, enum qut_refusal reason)
{
    if (!d->refusal)
        d->refusal = reason;
}

// vsp = register. A register popped before has the value popped, which is a word of the stack:
//   vsp = *(reg + slot_offset) + 0
static void set_vsp(struct decoder *d, unsigned reg)
{
    const struct address *slot = &d->slot[reg];
    if (!(d->popped & 1u << reg))
        d->vsp = (struct address){.reg = (uint8_t)reg};
    else if (!slot->deref)
        d->vsp = (struct address){.deref = true, .reg = slot->reg, .slot_offset_bytes = slot->offset_bytes};
    else
        refuse(d, QUT_REFUSED_CFA_EXPRESSION); // a word found through a word of the stack: outside the closed set
}

// Pops core registers from ascending addresses. A popped sp becomes vsp once all of them are popped.
static void pop_core(struct decoder *d, unsigned mask)
{
    for (unsigned reg = 0; reg < CORE_REGISTERS; reg++) {
        if (!(mask & 1u << reg))
            continue;
        d->slot[reg] = d->vsp;
        d->popped = (uint16_t)(d->popped | 1u << reg);
        d->vsp.offset_bytes += WORD_BYTES;
    }
    if (mask & 1u << REG_SP)
        set_vsp(d, REG_SP);
}

// Pops `count` coprocessor registers. No rule tracks these: only vsp moves.
static void pop_doubles(struct decoder *d, unsigned first, unsigned count, unsigned register_limit, unsigned pad_bytes)
{
    if (first + count > register_limit)
        refuse(d, QUT_REFUSED_REGISTER_RANGE);
    d->vsp.offset_bytes += (int64_t)count * DOUBLE_BYTES + pad_bytes;
}

// 0xa0-0xaf: r4-r[4+nnn], and lr with bit 3.
static unsigned short_pop_mask(unsigned opcode)
{
    unsigned count = (opcode & 7) + 1;
    return ((1u << count) - 1) << 4 | (opcode & 8 ? 1u << REG_LR : 0);
}

static void add_large(struct decoder *d)
{
    uint64_t words = base_read_uleb(&d->code);
    // vsp = vsp + 0x204 + (uleb << 2). What is beyond the format's 32 bits need not be told exactly.
    if (d->code.overlong || words > INT32_MAX)
        refuse(d, QUT_REFUSED_OFFSET_RANGE);
    else
        d->vsp.offset_bytes += 0x204 + (int64_t)(words << 2);
}

// The instructions with 0xb0-0xbf and 0xc0-0xff, in the order of the specification's table.
static void execute_upper(struct decoder *d, unsigned opcode)
{
    unsigned operand;
    switch (opcode) {
    case 0xb0: d->finished = true; return;
    case 0xb1: // r0-r3 under mask
        operand = base_read_u8(&d->code);
        if (operand == 0 || operand > 0x0f)
            refuse(d, QUT_REFUSED_EXIDX_OPCODE);
        pop_core(d, operand & 0x0f);
        return;
    case 0xb2: add_large(d); return;
    case 0xb3: // d[ssss]-d[ssss+cccc], as saved by FSTMFDX: one word more than the registers take
        operand = base_read_u8(&d->code);
        pop_doubles(d, operand >> 4, (operand & 15) + 1, FSTMX_REGISTERS, WORD_BYTES);
        return;
    case 0xb4: // the authentication code of the return address
        d->ra_signed = true;
        d->vsp.offset_bytes += WORD_BYTES;
        return;
    case 0xb5: // vsp is the modifier of that code: nothing moves
        return;
    case 0xb6:
    case 0xb7: refuse(d, QUT_REFUSED_EXIDX_OPCODE); return;
    case 0xc6: // wR[ssss]-wR[ssss+cccc]
        operand = base_read_u8(&d->code);
        pop_doubles(d, operand >> 4, (operand & 15) + 1, WMMX_REGISTERS, 0);
        return;
    case 0xc7: // wCGR0-wCGR3 under mask
        operand = base_read_u8(&d->code);
        if (operand == 0 || operand > 0x0f)
            refuse(d, QUT_REFUSED_EXIDX_OPCODE);
        d->vsp.offset_bytes += WORD_BYTES * __builtin_popcount(operand & 0x0f);
        return;
    case 0xc8: // d[16+ssss]-d[16+ssss+cccc], as saved by VPUSH
    case 0xc9: // d[ssss]-d[ssss+cccc], as saved by VPUSH
        operand = base_read_u8(&d->code);
        pop_doubles(d, (opcode == 0xc8 ? 16 : 0) + (operand >> 4), (operand & 15) + 1, VFP_REGISTERS, 0);
        return;
    default: break;
    }
    unsigned count = (opcode & 7) + 1;
    if (opcode >= 0xb8 && opcode <= 0xbf) // d8-d[8+nnn], as saved by FSTMFDX
        pop_doubles(d, 8, count, FSTMX_REGISTERS, WORD_BYTES);
    else if (opcode >= 0xc0 && opcode <= 0xc5) // wR10-wR[10+nnn]
        pop_doubles(d, 10, count, WMMX_REGISTERS, 0);
    else if (opcode >= 0xd0 && opcode <= 0xd7) // d8-d[8+nnn], as saved by VPUSH
        pop_doubles(d, 8, count, VFP_REGISTERS, 0);
    else
        refuse(d, QUT_REFUSED_EXIDX_OPCODE);
}

static void execute(struct decoder *d)
{
    unsigned opcode = base_read_u8(&d->code);
    switch (opcode >> 4) {
    case 0x0:
    case 0x1:
    case 0x2:
    case 0x3: // vsp = vsp + (xxxxxx << 2) + 4
        d->vsp.offset_bytes += (int64_t)((opcode & 0x3f) << 2) + 4;
        return;
    case 0x4:
    case 0x5:
    case 0x6:
    case 0x7: // vsp = vsp - (xxxxxx << 2) - 4
        d->vsp.offset_bytes -= (int64_t)((opcode & 0x3f) << 2) + 4;
        return;
    case 0x8: { // r4-r15 under a mask of 12 bits; none: refuse to unwind
        unsigned mask = (opcode & 15) << 8 | base_read_u8(&d->code);
        if (!mask)
            refuse(d, QUT_REFUSED_CANTUNWIND);
        pop_core(d, mask << 4);
        return;
    }
    case 0x9: // vsp = r[nnnn]; sp and pc are reserved
        if ((opcode & 15) == REG_SP || (opcode & 15) == REG_PC)
            refuse(d, QUT_REFUSED_EXIDX_OPCODE);
        else
            set_vsp(d, opcode & 15);
        return;
    case 0xa: pop_core(d, short_pop_mask(opcode)); return;
    default: execute_upper(d, opcode); return;
    }
}

static int32_t offset32(struct decoder *d, int64_t offset_bytes)
{
    if (offset_bytes < INT32_MIN || offset_bytes > INT32_MAX)
        refuse(d, QUT_REFUSED_OFFSET_RANGE);
    return (int32_t)offset_bytes;
}

static bool same_base(const struct address *a, const struct address *b)
{
    return a->deref == b->deref && a->reg == b->reg && a->slot_offset_bytes == b->slot_offset_bytes;
}

//   cfa = reg + offset                        (vsp never was a popped value)
//   cfa = *(reg + slot_offset) + offset
static struct qut_cfa cfa_rule(struct decoder *d)
{
    const struct address *vsp = &d->vsp;
    if (!vsp->deref)
        return (struct qut_cfa){.how = QUT_CFA_REG, .reg = vsp->reg, .offset_bytes = offset32(d, vsp->offset_bytes)};
    return (struct qut_cfa){.how = QUT_CFA_DEREF,
                            .reg = vsp->reg,
                            .offset_bytes = offset32(d, vsp->slot_offset_bytes),
                            .add_bytes = offset32(d, vsp->offset_bytes)};
}

//   register = *(cfa + (offset - vsp's last offset))   popped with the base that vsp had in the end
//   register = *(reg + offset)                         popped before vsp was given another base
static struct qut_reg_rule register_rule(struct decoder *d, unsigned reg)
{
    const struct address *slot = &d->slot[reg];
    if (!(d->popped & 1u << reg))
        return (struct qut_reg_rule){.how = QUT_REG_SAME};
    if (same_base(slot, &d->vsp))
        return (struct qut_reg_rule){.how = QUT_REG_AT_CFA,
                                     .offset_bytes = offset32(d, slot->offset_bytes - d->vsp.offset_bytes)};
    if (slot->deref)
        refuse(d, QUT_REFUSED_REGISTER_EXPRESSION);
    return (struct qut_reg_rule){
        .how = QUT_REG_AT_REG, .reg = slot->reg, .offset_bytes = offset32(d, slot->offset_bytes)};
}

struct qut_rule cfi_ehabi_rule(const struct arch *arch, struct base_bytes opcodes)
{
    if (opcodes.size > CFI_EHABI_OPCODES_MAX)
        opcodes.size = CFI_EHABI_OPCODES_MAX;
    struct decoder d = {.code = base_cursor(opcodes), .vsp = {.reg = REG_SP}};
    while (!d.finished && !d.refusal && base_cursor_left(&d.code))
        execute(&d);
    // An operand that is not there was read as zero, and may have been refused as that.
    if (d.code.failed)
        return cfi_rule_refused(QUT_REFUSED_EXIDX_TRUNCATED);

    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .flags = QUT_RULE_BODY_ONLY, .dex_pc_reg = QUT_NO_REGISTER};
    if (d.ra_signed)
        rule.flags |= QUT_RULE_RA_SIGNED;
    // A caller that called has its pc in lr. One that is given sp, lr and pc of its own was interrupted: this is the
    // C library's return from a signal handler.
    if ((d.popped & INTERRUPTED_CONTEXT) == INTERRUPTED_CONTEXT)
        rule.flags |= QUT_RULE_SIGNAL;
    rule.cfa = cfa_rule(&d);
    // A pc that nothing popped is lr's value, popped or not.
    rule.ra = register_rule(&d, d.popped & 1u << REG_PC ? REG_PC : REG_LR);
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        rule.tracked[slot] = register_rule(&d, arch->tracked[slot]);
    return d.refusal ? cfi_rule_refused(d.refusal) : rule;
}
