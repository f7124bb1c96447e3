// SPDX-License-Identifier: Apache-2.0
#include <Zydis/Zydis.h>
#include <elf.h>
#include <pthread.h>
#include <stddef.h>

#include "base/late.h"
#include "tracer/calls/inside.h"

enum { DWARF_FP = 6, REG_SP = 4, REG_FP = 5, RIP_RELATIVE = 5, SIB = 4, MOD_REGISTER = 3 };

static enum calls_flow flow_of(const ZydisDecodedInstruction *in)
{
    bool is_relative = in->raw.imm[0].is_relative;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_JMP: return is_relative ? CALLS_FLOW_JUMP : CALLS_FLOW_STOP;
    case ZYDIS_MNEMONIC_CALL: return is_relative ? CALLS_FLOW_CALL : CALLS_FLOW_CALL_BY;
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE: return CALLS_FLOW_LOOP;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3: return CALLS_FLOW_STOP;
    default: return is_relative ? CALLS_FLOW_CONDITION : CALLS_FLOW_NEXT;
    }
}

static bool is_legacy(const ZydisDecodedInstruction *in)
{
    return in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

// Memory at rsp or rbp and a constant.
static void read_base(const ZydisDecodedInstruction *in, struct calls_instruction *out)
{
    const struct ZydisDecodedInstructionModRm_ *modrm = &in->raw.modrm;
    bool extended = is_legacy(in) && in->raw.rex.B;
    if (modrm->mod == MOD_REGISTER || extended)
        return;
    if (modrm->rm == SIB && in->raw.sib.base == REG_SP && in->raw.sib.index == SIB && !in->raw.rex.X)
        out->base = CALLS_BASE_SP;
    else if (modrm->rm == REG_FP && modrm->mod != 0)
        out->base = CALLS_BASE_FP;
    out->offset = in->raw.disp.size ? in->raw.disp.value : 0;
}

static bool has_modrm(const ZydisDecodedInstruction *in)
{
    return in->raw.modrm.offset != 0;
}

static void read_memory(const ZydisDecodedInstruction *in, uint64_t end, struct calls_instruction *out)
{
    if (!has_modrm(in))
        return;
    if (in->raw.modrm.mod == 0 && in->raw.modrm.rm == RIP_RELATIVE) {
        out->has_address = true;
        out->operand_at = in->raw.disp.offset;
        out->target = end + (uint64_t)in->raw.disp.value;
    } else if (is_legacy(in)) {
        read_base(in, out);
    }
}

static void read_constant(const ZydisDecodedInstruction *in, struct calls_instruction *out)
{
    if (in->raw.imm[0].size >= 32 && !in->raw.imm[0].is_relative)
        out->constant = in->raw.imm[0].value.u;
    else if (in->raw.disp.size == 32 && !out->has_address)
        out->constant = (uint64_t)in->raw.disp.value;
}

// xbegin's target is where a transaction ends badly; `call` and jumps with 16 bits cut the address off.
static bool is_movable(const ZydisDecodedInstruction *in, const struct calls_instruction *out)
{
    if (in->mnemonic == ZYDIS_MNEMONIC_XBEGIN)
        return false;
    switch ((enum calls_flow)out->flow) {
    case CALLS_FLOW_CALL: return in->raw.imm[0].size == 32;
    case CALLS_FLOW_JUMP:
    case CALLS_FLOW_CONDITION:
    case CALLS_FLOW_LOOP: return in->raw.imm[0].size == 8 || in->raw.imm[0].size == 32;
    case CALLS_FLOW_CALL_BY: // near, and not by way of the stack that the return address was pushed to before
        return in->opcode == 0xff && in->raw.modrm.reg == 2 && out->base != CALLS_BASE_SP &&
               !(in->raw.modrm.mod != MOD_REGISTER && in->raw.modrm.rm == SIB && in->raw.sib.base == REG_SP &&
                 !in->raw.rex.B) &&
               !(in->raw.modrm.mod == MOD_REGISTER && in->raw.modrm.rm == REG_SP && !in->raw.rex.B);
    default: return in->address_width == 64 || !out->has_address;
    }
}

// Loaded when code is first read.
static struct {
    __typeof__(ZydisDecoderDecodeInstruction) *decode;
} zydis;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_zydis(void)
{
    static const struct base_late_function function = {"ZydisDecoderDecodeInstruction",
                                                       offsetof(__typeof__(zydis), decode)};
    base_late_load("Zydis", "libZydis.so.4.0", &function, 1, &zydis, NULL);
}

bool calls_read_by_zydis(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *out)
{
    static const ZydisDecoder decoder = {.machine_mode = ZYDIS_MACHINE_MODE_LONG_64,
                                         .stack_width = ZYDIS_STACK_WIDTH_64,
                                         .decoder_mode = {[ZYDIS_DECODER_MODE_MINIMAL] = ZYAN_TRUE,
                                                          [ZYDIS_DECODER_MODE_MPX] = ZYAN_TRUE,
                                                          [ZYDIS_DECODER_MODE_CET] = ZYAN_TRUE,
                                                          [ZYDIS_DECODER_MODE_LZCNT] = ZYAN_TRUE,
                                                          [ZYDIS_DECODER_MODE_TZCNT] = ZYAN_TRUE}};
    ZydisDecodedInstruction in;
    pthread_once(&once, load_zydis);
    if (!zydis.decode || !ZYAN_SUCCESS(zydis.decode(&decoder, NULL, bytes.data, bytes.size, &in)))
        return false;
    *out = (struct calls_instruction){.length = in.length, .flow = (uint8_t)flow_of(&in)};
    uint64_t end = vaddr + in.length;
    read_memory(&in, end, out);
    if (in.raw.imm[0].is_relative) {
        out->operand_at = in.raw.imm[0].offset;
        out->target = end + (uint64_t)in.raw.imm[0].value.s;
    } else if (out->flow == CALLS_FLOW_CALL_BY) {
        out->operand_at = in.raw.modrm.offset;
    }
    out->is_nop = in.mnemonic == ZYDIS_MNEMONIC_NOP;
    out->is_landing_mark = in.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
    out->is_pop = in.mnemonic == ZYDIS_MNEMONIC_POP;
    out->is_lea = in.mnemonic == ZYDIS_MNEMONIC_LEA;
    read_constant(&in, out);
    out->is_movable = is_movable(&in, out);
    out->words = out->base != CALLS_BASE_NONE;
    return true;
}

static bool read_x86_64(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *out)
{
    return calls_read_common_x86_64(bytes, vaddr, out) || calls_read_by_zydis(bytes, vaddr, out);
}

const struct calls_decoder calls_decoder_x86_64 = {
    .elf_machine = EM_X86_64,
    .read = read_x86_64,
    .unit_bytes = 1,
    .jump_bytes = CALLS_JUMP_BYTES,
    .fp_reg = DWARF_FP,
    .relative = R_X86_64_RELATIVE,
    .irelative = R_X86_64_IRELATIVE,
};
