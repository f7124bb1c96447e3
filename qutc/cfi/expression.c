// SPDX-License-Identifier: Apache-2.0
// A stack machine over a few symbolic values, just rich enough for every expression that occurs in frame programs of
// real binaries. Anything that leaves the set makes the value UNKNOWN, and the rule a refusal.
#include "qutc/cfi/expression.h"

#include "qutc/cfi/dwarf_constants.h"

enum { STACK_MAX = 16, OPS_MAX = 64 };
enum { SHADOW_REST_BYTES_MAX = 1 << 16 }; // a place in a frame

enum value_kind {
    UNKNOWN = 0,
    CONSTANT,   // k
    AFFINE,     // base + k, base a register or the cfa
    SCALED,     // reg2 << shift
    INDEXED,    // base + (reg2 << shift) + k
    LOADED,     // *(base + [reg2 << shift] + address_k) + k
    ALIGNED,    // ((base + address_k) & -(1 << shift)) + k
    PC_MASKED,  // pc & mask
    PC_REACHED, // ((pc & mask) >= threshold) << shift
    PLT,        // base + k + (((pc & mask) >= threshold) << shift)
    VECTORS,    // vectors * bytes of a vector register + k
    VECTOR,     // base + vectors * bytes of a vector register + k
};

enum { BASE_CFA = 0xfe };

struct value {
    enum value_kind kind;
    uint8_t base;
    uint8_t index; // QUT_NO_REGISTER where there is none
    uint8_t shift;
    uint8_t mask, threshold;
    int64_t address_k;
    int64_t vectors;
    int64_t k;
};

static struct value constant(int64_t k)
{
    return (struct value){.kind = CONSTANT, .index = QUT_NO_REGISTER, .k = k};
}

static int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct value add(struct value a, struct value b)
{
    if (b.kind == CONSTANT && (a.kind == CONSTANT || a.kind == AFFINE || a.kind == INDEXED || a.kind == LOADED ||
                               a.kind == ALIGNED || a.kind == PLT || a.kind == VECTORS || a.kind == VECTOR)) {
        a.k = wrapping_add(a.k, b.k);
        return a;
    }
    if (a.kind == CONSTANT && b.kind != CONSTANT)
        return add(b, a);
    if (a.kind == AFFINE && b.kind == SCALED) {
        a.kind = INDEXED;
        a.index = b.index;
        a.shift = b.shift;
        return a;
    }
    if (a.kind == AFFINE && b.kind == PC_REACHED) {
        b.kind = PLT;
        b.base = a.base;
        b.k = a.k;
        return b;
    }
    if (a.kind == AFFINE && b.kind == VECTORS && a.base != BASE_CFA) {
        b.kind = VECTOR;
        b.base = a.base;
        b.k = wrapping_add(a.k, b.k);
        return b;
    }
    if ((a.kind == SCALED || a.kind == PC_REACHED || a.kind == VECTORS) && b.kind == AFFINE)
        return add(b, a);
    return (struct value){0};
}

static struct value shift_left(struct value a, struct value b)
{
    if (b.kind != CONSTANT || b.k < 0 || b.k > 15)
        return (struct value){0};
    if (a.kind == CONSTANT)
        return constant((int64_t)((uint64_t)a.k << b.k));
    if (a.kind == AFFINE && a.k == 0 && a.base != BASE_CFA)
        return (struct value){.kind = SCALED, .index = a.base, .shift = (uint8_t)b.k};
    if (a.kind == PC_REACHED && a.shift == 0) {
        a.shift = (uint8_t)b.k;
        return a;
    }
    return (struct value){0};
}

static struct value multiply(struct value a, struct value b)
{
    if (a.kind == CONSTANT && b.kind != CONSTANT)
        return multiply(b, a);
    if (b.kind != CONSTANT)
        return (struct value){0};
    if (a.kind == VECTORS) { // wraps, as the machine's arithmetic does
        a.vectors = (int64_t)((uint64_t)a.vectors * (uint64_t)b.k);
        a.k = (int64_t)((uint64_t)a.k * (uint64_t)b.k);
        return a;
    }
    if (b.k > 0 && (b.k & (b.k - 1)) == 0) // a scale written as a factor
        return shift_left(a, constant(__builtin_ctzll((uint64_t)b.k)));
    return (struct value){0};
}

static struct value bit_and(const struct arch *arch, struct value a, struct value b)
{
    // The mask of an alignment: ones above, zeros below.
    if (a.kind == AFFINE && b.kind == CONSTANT && b.k < 0 && ((uint64_t)~b.k & ((uint64_t)~b.k + 1)) == 0) {
        a.kind = ALIGNED;
        a.shift = (uint8_t)__builtin_ctzll((uint64_t)b.k);
        a.address_k = a.k;
        a.k = 0;
        return a;
    }
    // The program counter is the return-address column of architectures that keep it on the stack.
    bool is_pc = a.kind == AFFINE && a.k == 0 && !arch->ra_in_register && a.base == arch->ra_reg;
    if (!is_pc || b.kind != CONSTANT || b.k < 0 || b.k > 0xff)
        return (struct value){0};
    return (struct value){.kind = PC_MASKED, .index = QUT_NO_REGISTER, .mask = (uint8_t)b.k};
}

static struct value greater_or_equal(struct value a, struct value b)
{
    if (a.kind != PC_MASKED || b.kind != CONSTANT || b.k < 0 || b.k > 0xff)
        return (struct value){0};
    a.kind = PC_REACHED;
    a.threshold = (uint8_t)b.k;
    return a;
}

static struct value load(struct value a)
{
    if (a.kind != AFFINE && a.kind != INDEXED)
        return (struct value){0};
    a.kind = LOADED;
    a.address_k = a.k;
    a.k = 0;
    return a;
}

static struct value binary(const struct arch *arch, uint8_t op, struct value a, struct value b)
{
    switch (op) {
    case OP_PLUS: return add(a, b);
    case OP_MINUS:
        if (b.kind != CONSTANT)
            return (struct value){0};
        return add(a, constant((int64_t)(0 - (uint64_t)b.k)));
    case OP_AND: return bit_and(arch, a, b);
    case OP_SHL: return shift_left(a, b);
    case OP_MUL: return multiply(a, b);
    case OP_GE: return greater_or_equal(a, b);
    default: return (struct value){0};
    }
}

static bool read_constant(struct base_cursor *c, uint8_t op, int64_t *k)
{
    switch (op) {
    case OP_CONST1U: *k = base_read_u8(c); return true;
    case OP_CONST1S: *k = (int8_t)base_read_u8(c); return true;
    case OP_CONST2U: *k = base_read_u16(c); return true;
    case OP_CONST2S: *k = (int16_t)base_read_u16(c); return true;
    case OP_CONST4U: *k = base_read_u32(c); return true;
    case OP_CONST4S: *k = (int32_t)base_read_u32(c); return true;
    case OP_CONST8U:
    case OP_CONST8S: *k = (int64_t)base_read_u64(c); return true;
    case OP_CONSTU: *k = (int64_t)base_read_uleb(c); return true;
    case OP_CONSTS: *k = base_read_sleb(c); return true;
    default:
        if (op < OP_LIT0 || op > OP_LIT31)
            return false;
        *k = op - OP_LIT0;
        return true;
    }
}

// The value the expression leaves on top, UNKNOWN where it leaves the set.
static struct value evaluate(const struct arch *arch, struct base_bytes ops, bool starts_with_cfa)
{
    const struct value unknown = {0};
    struct value stack[STACK_MAX];
    int depth = 0;
    if (starts_with_cfa)
        stack[depth++] = (struct value){.kind = AFFINE, .base = BASE_CFA, .index = QUT_NO_REGISTER};
    struct base_cursor c = base_cursor(ops);
    for (int count = 0; base_cursor_left(&c); count++) {
        if (count == OPS_MAX || depth == STACK_MAX)
            return unknown;
        uint8_t op = base_read_u8(&c);
        int64_t k = 0;
        if (read_constant(&c, op, &k)) {
            stack[depth++] = constant(k);
        } else if ((op >= OP_BREG0 && op <= OP_BREG31) || op == OP_BREGX) {
            uint64_t reg = op == OP_BREGX ? base_read_uleb(&c) : (uint64_t)(op - OP_BREG0);
            k = base_read_sleb(&c);
            if (reg < arch->register_count)
                stack[depth++] = (struct value){.kind = AFFINE, .base = (uint8_t)reg, .index = QUT_NO_REGISTER, .k = k};
            else if (reg == arch->vector_bytes_reg)
                stack[depth++] = (struct value){.kind = VECTORS, .index = QUT_NO_REGISTER, .vectors = 1, .k = k};
            else
                return unknown;
        } else if (op == OP_NOP) {
            continue;
        } else if (depth >= 1 && op == OP_DEREF) {
            stack[depth - 1] = load(stack[depth - 1]);
        } else if (depth >= 1 && op == OP_PLUS_UCONST) {
            stack[depth - 1] = add(stack[depth - 1], constant((int64_t)base_read_uleb(&c)));
        } else if (depth >= 1 && op == OP_DROP) {
            depth--;
        } else if (depth >= 2) {
            stack[depth - 2] = binary(arch, op, stack[depth - 2], stack[depth - 1]);
            depth--;
        } else {
            return unknown;
        }
    }
    return depth && base_cursor_is_sound(&c) ? stack[depth - 1] : unknown;
}

// Arithmetic wraps at the width of an address.
static struct value at_width(const struct arch *arch, struct value v)
{
    if (arch->word_bytes == 4) {
        v.k = (int32_t)(uint32_t)v.k;
        v.address_k = (int32_t)(uint32_t)v.address_k;
    }
    return v;
}

static bool fits(int64_t k)
{
    return k >= INT32_MIN && k <= INT32_MAX;
}

enum qut_refusal cfi_expression_cfa(const struct arch *arch, struct base_bytes ops, struct qut_cfa *cfa)
{
    struct value v = at_width(arch, evaluate(arch, ops, false));
    if (!fits(v.k) || !fits(v.address_k) || !fits(v.vectors))
        return QUT_REFUSED_OFFSET_RANGE;
    *cfa = (struct qut_cfa){.reg = v.base, .reg2 = 0, .offset_bytes = (int32_t)v.k};
    switch (v.kind) {
    case AFFINE: // cfa = reg + k
        cfa->how = QUT_CFA_REG;
        return QUT_REFUSED_NOT;
    case LOADED: // cfa = *(reg + [reg2 << shift] + address_k) + k
        cfa->how = v.index == QUT_NO_REGISTER ? QUT_CFA_DEREF : QUT_CFA_INDEXED;
        if (cfa->how == QUT_CFA_INDEXED) {
            cfa->reg2 = v.index;
            cfa->shift = v.shift;
        }
        cfa->offset_bytes = (int32_t)v.address_k;
        cfa->add_bytes = (int32_t)v.k;
        return QUT_REFUSED_NOT;
    case PLT: // cfa = reg + k + (((pc & mask) >= threshold) << shift)
        cfa->how = QUT_CFA_PLT;
        cfa->shift = v.shift;
        cfa->plt.mask = v.mask;
        cfa->plt.threshold = v.threshold;
        return QUT_REFUSED_NOT;
    case VECTOR: // cfa = reg + vectors * bytes of a vector register + k
        cfa->how = QUT_CFA_VECTOR;
        cfa->vector_count = (int32_t)v.vectors;
        return QUT_REFUSED_NOT;
    default: return QUT_REFUSED_CFA_EXPRESSION;
    }
}

// *(((cfa + address_k) & -(1 << shift)) + k)
static enum qut_refusal aligned_slot(struct value v, struct qut_reg_rule *rule)
{
    if (!fits(v.k) || v.address_k < INT16_MIN || v.address_k > INT16_MAX || v.shift > 15)
        return QUT_REFUSED_OFFSET_RANGE;
    *rule = (struct qut_reg_rule){
        .how = QUT_REG_AT_ALIGNED, .reg = v.shift, .bias_bytes = (int16_t)v.address_k, .offset_bytes = (int32_t)v.k};
    return QUT_REFUSED_NOT;
}

bool cfi_expression_shadow(const struct arch *arch, int64_t offset_bytes, struct qut_reg_rule *rule)
{
    const int64_t nearest_bytes = SHADOW_REST_BYTES_MAX - ((int64_t)1 << QUT_SHADOW_LOG2_MIN);
    if (arch->word_bytes == 4 || offset_bytes > nearest_bytes) // all but a few
        return false;
    for (uint8_t log2 = QUT_SHADOW_LOG2_MIN; log2 <= QUT_SHADOW_LOG2_MAX; log2++) {
        int64_t rest_bytes = wrapping_add(offset_bytes, (int64_t)((uint64_t)1 << log2));
        if (rest_bytes < -SHADOW_REST_BYTES_MAX || rest_bytes > SHADOW_REST_BYTES_MAX)
            continue;
        *rule = (struct qut_reg_rule){.how = QUT_REG_AT_SHADOW, .reg = log2, .offset_bytes = (int32_t)rest_bytes};
        return true;
    }
    return false;
}

enum qut_refusal cfi_expression_register(const struct arch *arch, struct base_bytes ops, bool is_value,
                                         struct qut_reg_rule *rule)
{
    struct value v = at_width(arch, evaluate(arch, ops, true));
    // A value that is loaded is a register saved at the address loaded from.
    bool at = !is_value;
    if (is_value && v.kind == LOADED && v.index == QUT_NO_REGISTER && v.k == 0) {
        v.kind = AFFINE;
        v.k = v.address_k;
        at = true;
    }
    if (v.kind == ALIGNED && v.base == BASE_CFA && at)
        return aligned_slot(v, rule);
    if (v.kind != AFFINE)
        return QUT_REFUSED_REGISTER_EXPRESSION;
    if (at && v.base == BASE_CFA && cfi_expression_shadow(arch, v.k, rule))
        return QUT_REFUSED_NOT;
    if (!fits(v.k))
        return QUT_REFUSED_OFFSET_RANGE;
    *rule = (struct qut_reg_rule){.offset_bytes = (int32_t)v.k};
    if (v.base == BASE_CFA) {
        rule->how = at ? QUT_REG_AT_CFA : QUT_REG_CFA_VALUE;
    } else {
        rule->how = at ? QUT_REG_AT_REG : QUT_REG_IN_REG;
        rule->reg = v.base;
    }
    return QUT_REFUSED_NOT;
}

uint8_t cfi_expression_dex_pc(const struct arch *arch, struct base_bytes ops)
{
    struct base_cursor c = base_cursor(ops);
    if (base_read_u8(&c) != OP_CONST4U || base_read_u32(&c) != 0x31584544 /* "DEX1" */ || base_read_u8(&c) != OP_DROP)
        return QUT_NO_REGISTER;
    uint8_t op = base_read_u8(&c);
    uint64_t reg = QUT_NO_REGISTER;
    if (op == OP_BREGX)
        reg = base_read_uleb(&c);
    else if (op >= OP_BREG0 && op <= OP_BREG31)
        reg = (uint64_t)(op - OP_BREG0);
    bool whole = base_read_sleb(&c) == 0 && base_cursor_is_sound(&c) && base_cursor_left(&c) == 0;
    return whole && reg < arch->register_count ? (uint8_t)reg : QUT_NO_REGISTER;
}
