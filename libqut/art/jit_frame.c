// SPDX-License-Identifier: Apache-2.0
// Where in its method a pc stands: before the frame is made, in the body, on the way out, or around a native call. The
// instructions from the method's first on are followed up to it, as the compiler of tables does for methods of OAT
// files (qutc/cfi/oat_track.c): the state of the body is the header's, and holds again behind what goes on elsewhere,
// or that of a branch to there.
#include <string.h>

#include "libqut/art/instruction.h"
#include "libqut/art/jit_code.h"

enum { NUMBERS = 32, ARGUMENT_BYTES_MAX = 1 << 16 };

static bool same(struct art_jit_state a, struct art_jit_state b)
{
    return a.cfa_bytes == b.cfa_bytes && a.saved == b.saved;
}

static struct art_jit_state entry_state(const struct arch *arch, const struct art_jit_arch *jit)
{
    return (struct art_jit_state){arch->word_bytes, 1u << jit->ra_number};
}

// Words below the caller's sp: the return address is next to it, then the others, the highest number first. 0: it has
// no place.
static unsigned place_of(const struct art_jit_arch *jit, uint32_t core_mask, unsigned number)
{
    if (number == jit->ra_number)
        return 1;
    if (number >= NUMBERS || !(core_mask >> number & 1))
        return 0;
    uint32_t above = core_mask & ~(1u << jit->ra_number) & ~(((uint32_t)2 << number) - 1);
    return 2 + (unsigned)__builtin_popcount(above);
}

void art_jit_set_rule(const struct arch *arch, const struct art_jit_frame *frame, struct qut_rule *rule)
{
    const struct art_jit_arch *jit = art_jit_arch(arch);
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_FRAME;
    rule->dex_pc_reg = QUT_NO_REGISTER;
    rule->cfa.reg = arch->sp_reg;
    rule->cfa.offset_bytes = frame->cfa_bytes;
    rule->ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
    for (unsigned number = 0; jit && number < jit->ra_number; number++) {
        int slot = arch_slot(arch, number < 8 ? jit->dwarf_numbers[number] : number);
        int32_t place = (int32_t)place_of(jit, frame->core_mask, number);
        if (slot >= 0 && frame->saved >> number & 1)
            rule->tracked[slot] =
                (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -(place * arch->word_bytes)};
    }
}

// At the start of an instruction. False where it is reached in two ways that contradict each other.
static bool arrive(struct art_jit_follower *f, uint32_t at)
{
    bool is_new_block = !f->in_block;
    if (is_new_block)
        f->now = f->has_body ? f->body : entry_state(f->arch, f->jit);
    f->in_block = true;
    for (unsigned i = 0; i < f->pending_count; i++) {
        if (f->pending[i].at != at)
            continue;
        if (is_new_block)
            f->now = f->pending[i].state;
        else if (!same(f->now, f->pending[i].state))
            return false;
        is_new_block = false;
        f->pending[i] = f->pending[--f->pending_count];
        i--;
    }
    return true;
}

// Where a branch leads back to, its state was met already.
static bool remember_branch(struct art_jit_follower *f, const struct art_instruction *in, uint32_t at)
{
    struct art_jit_state usual = f->has_body ? f->body : entry_state(f->arch, f->jit);
    if (!in->branches || in->branch_bytes <= 0 || same(f->now, usual))
        return true;
    if (f->pending_count == ART_JIT_BRANCHES_MAX)
        return false;
    f->pending[f->pending_count++] = (struct art_jit_branch){at + (uint32_t)in->branch_bytes, f->now};
    return true;
}

// False where the code contradicts its header: it stores a register that it has not saved.
static bool move_words(struct art_jit_follower *f, const struct art_instruction *in)
{
    for (unsigned i = 0; i < in->access_count; i++) {
        unsigned reg = in->access[i].reg;
        unsigned place = reg == f->jit->ra_number ? 0 : place_of(f->jit, f->method->core_mask, reg);
        if (!place && !in->loads && reg < NUMBERS && (f->jit->callee_saves >> reg & 1))
            return false;
        if (!place || in->access[i].offset_bytes != f->now.cfa_bytes - (int32_t)place * (int32_t)f->arch->word_bytes)
            continue;
        if (in->loads)
            f->now.saved &= ~(1u << reg);
        else
            f->now.saved |= 1u << reg;
    }
    return true;
}

// False where the instruction does what we do not follow.
static bool follow(struct art_jit_follower *f, const struct art_instruction *in, uint32_t at)
{
    struct art_jit_state entry = entry_state(f->arch, f->jit);
    if (in->size_bytes == 0 || in->effect == ART_SP_LOST || !move_words(f, in))
        return false;
    f->now.cfa_bytes -= in->sp_change_bytes;
    if (f->now.cfa_bytes < entry.cfa_bytes || (uint32_t)f->now.cfa_bytes > f->method->frame_bytes + ARGUMENT_BYTES_MAX)
        return false;
    f->has_body |= same(f->now, f->body);
    f->is_behind_call = in->effect == ART_CALL;
    // A frame that is partly taken down is so for a return.
    bool in_epilogue = f->has_body && f->now.cfa_bytes < f->body.cfa_bytes;
    switch (in->effect) {
    case ART_CALL: return f->has_body && !in_epilogue;
    case ART_RETURN: f->in_block = false; return f->has_body && same(f->now, entry);
    case ART_LEAVES:
        f->in_block = false;
        if (!same(f->now, entry) && (!f->has_body || in_epilogue))
            return false;
        break;
    default: break;
    }
    return remember_branch(f, in, at);
}

bool art_jit_frame_at(const struct elf_art_memory *memory, struct art_jit_scratch *scratch,
                      const struct art_jit_method *method, uint64_t pc, enum arch_pc_kind kind,
                      struct art_jit_frame *frame)
{
    const struct art_jit_arch *jit = art_jit_arch(memory->arch);
    if (!jit || pc < method->start || pc - method->start > method->code_bytes)
        return false;
    struct art_jit_follower *f = &scratch->follower;
    struct art_instruction *in = &scratch->instruction;
    uint32_t target = (uint32_t)(pc - method->start), window_at = 0, window_end = 0;
    *f = (struct art_jit_follower){.arch = memory->arch, .jit = jit, .method = method, .in_block = true};
    f->now = entry_state(f->arch, jit);
    f->body = method->frame_bytes <= f->arch->word_bytes
                  ? f->now
                  : (struct art_jit_state){(int32_t)method->frame_bytes, method->core_mask | 1u << jit->ra_number};
    f->has_body = same(f->now, f->body);
    for (uint32_t at = 0; at < target; at += in->size_bytes) {
        if (window_end - at < ART_X86_BYTES_MAX && window_end < method->code_bytes) {
            uint32_t left = method->code_bytes - at, most = sizeof scratch->window;
            window_at = at;
            window_end = at + (uint32_t)memory->read(memory->context, method->start + at, scratch->window,
                                                     left < most ? left : most);
        }
        if (!arrive(f, at))
            return false;
        art_read_x86(scratch->window + (at - window_at), window_end - at, true, in);
        if (!follow(f, in, at) || in->size_bytes > target - at)
            return false;
    }
    // Behind a call its state holds, whatever else leads there. Two kinds of return addresses have no call before: ART
    // lets a load through a null pointer return behind it, from what throws the exception, and goes to where one is
    // caught as if it returned there. Both happen in the body.
    bool is_called = kind == ARCH_PC_RETURN && f->in_block && f->is_behind_call;
    if (!is_called && (!arrive(f, target) || (kind == ARCH_PC_RETURN && !same(f->now, f->body))))
        return false;
    *frame = (struct art_jit_frame){f->now.cfa_bytes, f->now.saved, method->core_mask};
    return true;
}
