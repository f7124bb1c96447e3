// SPDX-License-Identifier: Apache-2.0
// Loads and stores, however they are encoded, and what jumps.
#include "qutc/code/arm/inside.h"

void code_arm_jump(const struct code_arm *a, unsigned reg)
{
    a->in->flow = reg == CODE_ARM_LR ? CODE_RETURN : CODE_JUMP;
    a->in->target_mode = CODE_MODE_BY_ADDRESS;
    a->in->through = (uint8_t)code_arm_source(a, reg); // bx pc: to Arm code behind it
}

// What is loaded into pc is jumped to; from the stack, it is returned to.
static unsigned loaded_into(const struct code_arm *a, unsigned reg, unsigned base)
{
    if (reg != CODE_ARM_PC)
        return reg;
    a->in->flow = base == CODE_ARM_SP ? CODE_RETURN : CODE_JUMP;
    a->in->through = CODE_REG_SCRATCH;
    a->in->target_mode = CODE_MODE_BY_ADDRESS;
    return CODE_REG_SCRATCH;
}

static void load(const struct code_arm *a, unsigned reg, const struct code_arm_transfer *t, int64_t offset)
{
    struct code_instruction *in = a->in;
    unsigned to = loaded_into(a, reg, t->base);
    if (t->writes_back && reg == t->base) { // processors differ
        code_lose(in, to);
        return;
    }
    if (t->base == CODE_ARM_PC && t->index == CODE_REG_NONE) {
        struct code_op *op = code_add(in, CODE_OP_INDEXED, to, CODE_REG_NONE);
        op->number = (int64_t)(uint32_t)(a->literal + (uint32_t)offset);
        op->size_bytes = (uint8_t)t->bytes;
        op->negative = t->is_signed;
        return;
    }
    bool indexed = t->index != CODE_REG_NONE && t->before;
    if (indexed && (t->is_odd || t->subtracts || t->writes_back || t->index == CODE_ARM_PC)) {
        code_lose(in, to);
        return;
    }
    unsigned base = code_arm_source(a, t->base);
    struct code_op *op = code_add(in, indexed ? CODE_OP_INDEXED : CODE_OP_LOAD, to, base);
    op->number = indexed ? 0 : offset;
    op->other = (uint8_t)(indexed ? t->index : CODE_REG_NONE);
    op->shift = (uint8_t)t->shift;
    op->size_bytes = (uint8_t)t->bytes;
    op->negative = t->is_signed;
}

static void store(const struct code_arm *a, unsigned reg, const struct code_arm_transfer *t, int64_t offset)
{
    struct code_instruction *in = a->in;
    bool is_unsure = reg == CODE_ARM_PC || (t->writes_back && reg == t->base); // processors differ
    unsigned from = is_unsure ? CODE_REG_NONE : reg, base = t->base;
    if (base == CODE_ARM_PC)
        return;
    if (t->index != CODE_REG_NONE && t->before && !t->writes_back) {
        if (t->is_odd || t->index == CODE_ARM_PC)
            return; // somewhere
        struct code_op *sum = code_add(in, CODE_OP_ADD, CODE_REG_SCRATCH, base);
        sum->other = (uint8_t)t->index;
        sum->shift = (uint8_t)t->shift;
        sum->negative = t->subtracts;
        base = CODE_REG_SCRATCH;
        offset = 0;
    }
    code_store(in, base, offset, from, t->bytes);
}

static void change_base(const struct code_arm *a, const struct code_arm_transfer *t)
{
    if (t->base == CODE_ARM_PC)
        code_arm_unknown(a);
    else if (t->index == CODE_REG_NONE)
        code_set(a->in, t->base, t->base, t->offset);
    else
        code_lose(a->in, t->base);
}

void code_arm_transfer(const struct code_arm *a, const struct code_arm_transfer *t)
{
    bool early = t->writes_back && t->before;
    if (early)
        change_base(a, t);
    int64_t offset = early || !t->before ? 0 : t->offset;
    if (t->loads)
        load(a, t->reg, t, offset);
    else
        store(a, t->reg, t, offset);
    if (t->writes_back && !early && !(t->loads && t->reg == t->base))
        change_base(a, t);
}

void code_arm_transfer_two(const struct code_arm *a, const struct code_arm_transfer *t, unsigned second)
{
    bool early = t->writes_back && t->before;
    if (early)
        change_base(a, t);
    int64_t offset = early || !t->before ? 0 : t->offset;
    bool indexed = t->index != CODE_REG_NONE && t->before && !early;
    if (t->loads && (indexed || t->reg == CODE_ARM_PC || second == CODE_ARM_PC)) {
        code_arm_lose(a, t->reg);
        code_arm_lose(a, second);
    } else if (t->loads) { // the base last
        bool swap = t->reg == t->base;
        load(a, swap ? second : t->reg, t, offset + (swap ? 4 : 0));
        load(a, swap ? t->reg : second, t, offset + (swap ? 0 : 4));
    } else if (!indexed) {
        store(a, t->reg, t, offset);
        store(a, second, t, offset + 4);
    } else {
        store(a, CODE_ARM_PC, t, 0);
    }
    if (t->writes_back && !early && !(t->loads && (t->reg == t->base || second == t->base)))
        change_base(a, t);
}

void code_arm_transfer_many(const struct code_arm *a, unsigned base, uint32_t list, bool loads, bool up, bool before,
                            bool writes_back)
{
    struct code_instruction *in = a->in;
    int32_t bytes = 4 * __builtin_popcount(list), offset = up ? 0 : -bytes;
    bool has_base = list >> base & 1;
    if (base == CODE_ARM_PC || list == 0) {
        code_arm_unknown(a);
        return;
    }
    if (before == up)
        offset += 4;
    if (!loads && writes_back && !up) { // first, so that nothing is stored below sp
        code_set(in, base, base, -bytes);
        offset += bytes;
    }
    int32_t base_at = 0;
    for (unsigned reg = 0; reg < 16; reg++) {
        if (!(list >> reg & 1))
            continue;
        bool is_unsure = reg == CODE_ARM_PC || (reg == base && writes_back);
        if (!loads)
            code_store(in, base, offset, is_unsure ? CODE_REG_NONE : reg, 4);
        else if (reg == base)
            base_at = offset; // last
        else
            code_load(in, loaded_into(a, reg, base), base, offset, 4);
        offset += 4;
    }
    if (loads && has_base && writes_back)
        code_lose(in, base); // processors differ
    else if (loads && has_base)
        code_load(in, base, base, base_at, 4);
    else if (writes_back && (loads || up))
        code_set(in, base, base, up ? bytes : -bytes);
    // Frames of the old standard are left by a frame pointer: ldmdb fp, {fp, sp, pc}
    if (loads && list >> CODE_ARM_PC && list >> CODE_ARM_SP & 1)
        in->flow = CODE_RETURN;
}
