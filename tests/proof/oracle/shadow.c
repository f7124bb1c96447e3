// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/shadow.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 1 << 22,
    SIGNAL_FRAME_BYTES_MIN = 100, // less than any kernel's, more than any instruction moves sp by
    SIGNAL_FRAME_BYTES_MAX = 1 << 14,
    POPPED_ARGUMENT_BYTES_MAX = 0xffff,
};

void shadow_open(struct shadow *shadow, struct guest *guest)
{
    *shadow = (struct shadow){.guest = guest};
}

static struct shadow_site *site_slot(const struct shadow *shadow, uint64_t pc)
{
    size_t at = (size_t)(pc * 0x9e3779b97f4a7c15u >> 20) & (shadow->site_capacity - 1);
    while (shadow->sites[at].pc && shadow->sites[at].pc != pc)
        at = (at + 1) & (shadow->site_capacity - 1);
    return &shadow->sites[at];
}

static void note_site(struct shadow *shadow, uint64_t pc, uint64_t sp)
{
    if (2 * shadow->site_count >= shadow->site_capacity) {
        struct shadow_site *old = shadow->sites;
        size_t old_capacity = shadow->site_capacity;
        shadow->site_capacity = old_capacity ? 2 * old_capacity : 1 << 12;
        shadow->sites = calloc(shadow->site_capacity, sizeof *old);
        if (!shadow->sites)
            abort();
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].pc)
                *site_slot(shadow, old[i].pc) = old[i];
        free(old);
    }
    struct shadow_site *site = site_slot(shadow, pc);
    shadow->site_count += site->pc == 0;
    *site = (struct shadow_site){pc, sp, shadow->depth};
}

static void push(struct shadow *shadow, enum shadow_kind kind, uint64_t cfa, uint64_t ra,
                 const struct arch_frame_regs *regs)
{
    const struct arch *arch = shadow->guest->arch;
    if (shadow->depth == shadow->capacity) {
        shadow->capacity = shadow->capacity ? 2 * shadow->capacity : 256;
        shadow->frames = realloc(shadow->frames, shadow->capacity * sizeof *shadow->frames);
        if (!shadow->frames || shadow->depth > DEPTH_MAX)
            abort();
    }
    struct shadow_frame *frame = &shadow->frames[shadow->depth++];
    *frame = (struct shadow_frame){.cfa = cfa, .ra = ra, .kind = kind};
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        frame->tracked[slot] = regs->reg[arch->tracked[slot]];
    if (shadow->depth > shadow->deepest)
        shadow->deepest = shadow->depth;
}

static uint64_t plain(const struct shadow *shadow, uint64_t pc)
{
    return shadow->guest->arch->has_thumb ? pc & ~(uint64_t)1 : pc;
}

// Where the code that was just entered returns to.
static bool return_address(const struct shadow *shadow, const struct arch_frame_regs *regs, uint64_t *ra)
{
    const struct arch *arch = shadow->guest->arch;
    if (!arch->ra_in_register)
        return guest_read_word(shadow->guest, regs->reg[arch->sp_reg], ra);
    *ra = plain(shadow, regs->reg[arch->ra_reg]);
    return true;
}

// __x86.get_pc_thunk.*: mov (%esp), REGISTER; ret. Gives its caller its own address in any register.
static bool is_pc_thunk(const struct shadow *shadow, uint64_t pc)
{
    uint8_t code[4];
    return shadow->guest->arch->id == QUT_ARCH_X86 &&
           guest_read_bytes(shadow->guest, pc, code, sizeof code) == sizeof code && code[0] == 0x8b &&
           (code[1] & 0xc7) == 0x04 && code[2] == 0x24 && code[3] == 0xc3;
}

static void call(struct shadow *shadow, uint64_t cfa, const struct arch_frame_regs *regs)
{
    note_site(shadow, shadow->before.next_pc, cfa);
    push(shadow, SHADOW_CALL, cfa, shadow->before.next_pc, regs);
    shadow->frames[shadow->depth - 1].is_thunk = is_pc_thunk(shadow, regs->pc);
    shadow->calls++;
}

static bool arrive_by_call(struct shadow *shadow, const struct arch_frame_regs *regs)
{
    const struct shadow_before *before = &shadow->before;
    const struct arch *arch = shadow->guest->arch;
    uint64_t ra, sp = regs->reg[arch->sp_reg];
    uint64_t pushed = arch->ra_in_register ? 0 : arch->word_bytes;
    // To the next instruction: a call that its condition forbids, or i386's way to learn its own address.
    if (before->kind != INSTRUCTION_CALL || regs->pc == before->next_pc || sp + pushed != before->sp ||
        !return_address(shadow, regs, &ra) || ra != before->next_pc)
        return false;
    call(shadow, sp + pushed, regs);
    return true;
}

static bool arrive_by_return(struct shadow *shadow, uint64_t pc, uint64_t sp)
{
    const struct shadow_frame *top = shadow_top(shadow);
    if (!top || pc != top->ra || top->kind != SHADOW_CALL)
        return false;
    uint64_t popped = shadow->guest->arch->ra_in_register ? 0 : POPPED_ARGUMENT_BYTES_MAX;
    if (sp < top->cfa || sp - top->cfa > popped)
        return false;
    shadow->depth--;
    shadow->returns++;
    return true;
}

// The interrupted registers, from the handler's third argument. The kernel keeps the tracked ones when it enters a
// handler, but for aarch64's frame pointer: a handler's points to a frame record that the kernel made.
static bool interrupted(const struct shadow *shadow, const struct arch_frame_regs *regs, struct arch_frame_regs *before)
{
    static const struct {
        uint8_t argument_reg; // DWARF number; i386 has it at sp + 12
        uint16_t sp_offset, pc_offset, fp_offset;
    } layout[QUT_ARCH_END] = {
        [QUT_ARCH_X86_64] = {1, 160, 168, 120},
        [QUT_ARCH_X86] = {0, 48, 76, 44},
        [QUT_ARCH_AARCH64] = {2, 432, 440, 416},
        [QUT_ARCH_ARM] = {2, 84, 92, 76},
    };
    const struct arch *arch = shadow->guest->arch;
    uint64_t ucontext = regs->reg[layout[arch->id].argument_reg];
    if (arch->id == QUT_ARCH_X86 && !guest_read_word(shadow->guest, regs->reg[arch->sp_reg] + 12, &ucontext))
        return false;
    *before = *regs;
    return guest_read_word(shadow->guest, ucontext + layout[arch->id].pc_offset, &before->pc) &&
           guest_read_word(shadow->guest, ucontext + layout[arch->id].sp_offset, &before->reg[arch->sp_reg]) &&
           guest_read_word(shadow->guest, ucontext + layout[arch->id].fp_offset, &before->reg[arch->tracked[0]]);
}

static bool arrive_by_signal(struct shadow *shadow, const struct arch_frame_regs *regs)
{
    const struct shadow_before *before = &shadow->before;
    const struct arch *arch = shadow->guest->arch;
    uint64_t sp = regs->reg[arch->sp_reg], ra;
    struct arch_frame_regs code_before;
    uint8_t code[SIGNAL_RETURN_BYTES];
    bool far = before->sp - sp >= SIGNAL_FRAME_BYTES_MIN && sp - before->sp >= SIGNAL_FRAME_BYTES_MIN;
    if ((!far && before->kind != INSTRUCTION_SYSCALL) || !return_address(shadow, regs, &ra) ||
        guest_read_bytes(shadow->guest, ra, code, sizeof code) != sizeof code ||
        !instruction_is_signal_return(arch, code) || !interrupted(shadow, regs, &code_before))
        return false;
    if (before->kind == INSTRUCTION_CALL && code_before.pc != before->next_pc)
        call(shadow, before->sp, &code_before); // interrupted before the callee's first instruction
    if (before->kind == INSTRUCTION_OTHER)      // or behind a return
        arrive_by_return(shadow, plain(shadow, code_before.pc), code_before.reg[arch->sp_reg]);
    const struct shadow_frame *top = shadow_top(shadow);
    if (before->kind == INSTRUCTION_SYSCALL && top && top->kind == SHADOW_SIGNAL && code_before.pc == top->ra) {
        shadow->depth--; // one signal after the other, with no instruction in between
        shadow->signal_returns++;
    }
    uint64_t interrupted_sp = code_before.reg[arch->sp_reg];
    push(shadow, SHADOW_SIGNAL, interrupted_sp, plain(shadow, code_before.pc), &code_before);
    shadow->frames[shadow->depth - 1].other_stack = interrupted_sp - sp > SIGNAL_FRAME_BYTES_MAX;
    push(shadow, SHADOW_CALL, sp + (arch->ra_in_register ? 0 : arch->word_bytes), ra, regs);
    shadow->signals++;
    return true;
}

static bool arrive_by_signal_return(struct shadow *shadow, uint64_t pc)
{
    const struct shadow_frame *top = shadow_top(shadow);
    if (shadow->before.kind != INSTRUCTION_SYSCALL || !top || top->kind != SHADOW_SIGNAL)
        return false;
    shadow->signal_mismatches += pc != top->ra;
    shadow->signal_returns++;
    shadow->depth--;
    return true;
}

// Frames that the stack pointer has left. A leaf of a link-register architecture may stand at its CFA.
static void drop_left_frames(struct shadow *shadow, uint64_t sp)
{
    bool equal_counts = !shadow->guest->arch->ra_in_register;
    while (shadow->depth) {
        const struct shadow_frame *top = shadow_top(shadow);
        if (sp < top->cfa || (sp == top->cfa && !equal_counts) || top->other_stack)
            return;
        shadow->depth--;
        shadow->unwound++;
    }
}

// longjmp: to behind the call of setjmp, with the stack as it was there.
static void arrive_by_jump(struct shadow *shadow, uint64_t pc, uint64_t sp)
{
    const struct shadow_site *site = shadow->site_capacity ? site_slot(shadow, pc) : NULL;
    if (!site || site->pc != pc || site->sp != sp || site->depth > shadow->depth)
        return;
    shadow->unwound += shadow->depth - site->depth;
    shadow->depth = site->depth;
}

void shadow_arrive(struct shadow *shadow, const struct arch_frame_regs *regs, enum instruction_kind kind,
                   uint64_t next_pc)
{
    const struct arch *arch = shadow->guest->arch;
    const struct shadow_before *before = &shadow->before;
    uint64_t sp = regs->reg[arch->sp_reg];
    if (shadow->ready && regs->pc != before->next_pc && !arrive_by_call(shadow, regs) &&
        !arrive_by_signal(shadow, regs) && !arrive_by_signal_return(shadow, regs->pc) &&
        before->kind == INSTRUCTION_OTHER && !arrive_by_return(shadow, regs->pc, sp))
        arrive_by_jump(shadow, regs->pc, sp);
    drop_left_frames(shadow, sp);
    shadow->before = (struct shadow_before){kind, regs->pc, next_pc, sp};
    shadow->ready = true;
}
