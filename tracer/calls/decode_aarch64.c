// SPDX-License-Identifier: Apache-2.0
// A64, by the decoder that tables are made with.
#include <elf.h>

#include "qutc/code/op.h"
#include "tracer/calls/inside.h"

enum { FP = 29, LINK = 30, SP = 31, SHADOW_CALLS = 18, WORD_BYTES = 8, INSTRUCTION_BYTES = 4 };

static enum calls_flow flow_of(const struct code_instruction *in)
{
    bool has_target = in->through == CODE_REG_NONE;
    switch ((enum code_flow)in->flow) {
    case CODE_CALL: return has_target ? CALLS_FLOW_CALL : CALLS_FLOW_CALL_BY;
    case CODE_JUMP: return has_target ? CALLS_FLOW_JUMP : CALLS_FLOW_STOP;
    case CODE_BRANCH: return CALLS_FLOW_CONDITION;
    case CODE_RETURN:
    case CODE_STOP: return CALLS_FLOW_STOP;
    default: return CALLS_FLOW_NEXT;
    }
}

// Memory at sp or x29 that is loaded from or stored to, but for the link register's own word.
static void read_base(const struct code_instruction *in, struct calls_instruction *out)
{
    int64_t moved = 0;
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        bool loads = op->kind == CODE_OP_LOAD, stores = op->kind == CODE_OP_STORE;
        unsigned base = loads ? op->from : op->to, value = loads ? op->to : op->from;
        if (op->kind == CODE_OP_SET && op->to == SP && op->from == SP)
            moved += op->number;
        if ((!loads && !stores) || value == LINK || (base != SP && base != FP))
            continue;
        if (out->base == CALLS_BASE_NONE)
            out->offset = op->number + moved;
        out->base = base == SP ? CALLS_BASE_SP : CALLS_BASE_FP;
        out->words++;
    }
}

// To save the link register on the stack, or on that of shadow calls, is what functions do with it.
static void read_link(const struct code_instruction *in, uint32_t word, struct calls_instruction *out)
{
    enum { XPACLRI = 0xd50320ff };
    out->reads_link = word == XPACLRI;
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        bool saves = op->kind == CODE_OP_STORE && (op->to == SP || op->to == SHADOW_CALLS);
        out->reads_link |= (op->from == LINK && !saves) || op->other == LINK;
        out->writes_link |=
            op->to == LINK && op->kind != CODE_OP_STORE && op->kind != CODE_OP_SIGN && op->kind != CODE_OP_AUTH;
        if (op->kind == CODE_OP_SIGN && in->is_landing)
            out->signs = op->number ? QUT_PLAN_SIGNED_B : QUT_PLAN_SIGNED_A;
    }
    out->writes_link |= in->flow == CODE_CALL;
}

// What counts from where it stands.
static bool has_address(uint32_t word)
{
    return (word & 0x1f000000) == 0x10000000 || (word & 0x3b000000) == 0x18000000; // adr, adrp; ldr of a literal
}

// A call leaves its return address in the link register, where the function's own still is: if it comes first, it is
// not known how the function returns. Of conditional branches those that thunk_aarch64.c can turn round.
static bool is_movable(const struct code_instruction *in, uint32_t word)
{
    bool is_known_branch = (word & 0xff000010) == 0x54000000 || (word & 0x7c000000) == 0x34000000;
    return in->flow == CODE_BRANCH ? is_known_branch : in->flow != CODE_CALL && in->flow != CODE_UNKNOWN;
}

static bool read_aarch64(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *out)
{
    struct code_instruction in;
    struct base_cursor c = base_cursor(bytes);
    uint32_t word = base_read_u32(&c);
    if (vaddr % INSTRUCTION_BYTES != 0)
        return false;
    code_read_aarch64(bytes, vaddr, 0, &in);
    if (in.size_bytes == 0)
        return false;
    *out = (struct calls_instruction){.length = in.size_bytes,
                                      .flow = (uint8_t)flow_of(&in),
                                      .is_nop = in.is_padding,
                                      .is_landing_mark = in.is_landing,
                                      .has_address = has_address(word),
                                      .is_movable = is_movable(&in, word),
                                      .target = in.target};
    read_base(&in, out);
    read_link(&in, word, out);
    return true;
}

const struct calls_decoder calls_decoder_aarch64 = {
    .elf_machine = EM_AARCH64,
    .read = read_aarch64,
    .unit_bytes = INSTRUCTION_BYTES,
    .jump_bytes = INSTRUCTION_BYTES,
    .fp_reg = FP,
    .relative = R_AARCH64_RELATIVE,
    .irelative = R_AARCH64_IRELATIVE,
};
