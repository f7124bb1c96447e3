// SPDX-License-Identifier: Apache-2.0
// What a step of the slow way depends on is the frame, what it reads of the stack, and what is known of code. Where the
// frame's registers are pc, sp and fp alone, and its code stays what it is as long as what is known of it does, such a
// step need not be made twice: an interpreter's frame of HotSpot took 500 cycles, a frame of V8's builtins 300.
#include "libqut/walk/seen_steps.h"

#include "libqut/os/os.h"
#include "libqut/runtime/walk_inline.h"
#include "libqut/walk/known_code.h"
#include "libqut/walk/walk_local.h"

void walk_seen_begin(struct runtime_seen_steps *seen, uint32_t modules_epoch, uint32_t made_generation)
{
    seen->pending = NULL;
    if (seen->modules_epoch == modules_epoch && seen->made_generation == made_generation)
        return;
    seen->modules_epoch = modules_epoch;
    seen->made_generation = made_generation;
    seen->stamp++; // 2^32 changes later a step may count again, if all that it has read is what it was
}

static bool reads_the_same(const struct runtime_seen_step *step, struct walk_direct direct)
{
    for (unsigned i = 0; i < step->read_count; i++) {
        uintptr_t address = step->reads[i].address;
        if (!walk_is_direct(direct, address) || os_load(address) != step->reads[i].value)
            return false;
    }
    return true;
}

static struct runtime_seen_step *find(struct runtime_seen_steps *seen, uintptr_t pc, uintptr_t sp, uintptr_t fp,
                                      unsigned flags, struct walk_direct direct)
{
    struct runtime_seen_step *step = runtime_seen_place(seen, sp);
    return step->pc == pc && step->sp == sp && step->fp == fp && step->stamp == seen->stamp &&
                   step->entered_flags == flags && reads_the_same(step, direct)
               ? step
               : NULL;
}

static void go(struct runtime_walk *walk, const struct runtime_seen_step *step)
{
    walk->regs.pc = step->outer_pc;
    walk->regs.sp = step->outer_sp;
    walk->regs.tracked[ARCH_NATIVE_FP_SLOT] = step->outer_fp;
    walk->regs.valid = WALK_FAST_REGISTERS;
    walk->flags = step->outer_flags;
    walk->classified = (step->outer_flags & QUT_FRAME_DEX) != 0;
    walk->dex_pc = step->outer_dex_pc;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->index++;
    if (walk->flags & QUT_FRAME_GUESSED && walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
}

bool walk_seen_follow(struct runtime_seen_steps *seen, struct runtime_walk *walk, struct walk_direct direct,
                      unsigned *flags)
{
    seen->pending = NULL;
    if (walk->pc_kind != ARCH_PC_RETURN || walk->classified || walk->regs.valid != WALK_FAST_REGISTERS)
        return false;
    uintptr_t pc = (uintptr_t)walk->regs.pc, sp = (uintptr_t)walk->regs.sp;
    uintptr_t fp = (uintptr_t)walk->regs.tracked[ARCH_NATIVE_FP_SLOT];
    struct runtime_seen_step *step = find(seen, pc, sp, fp, walk->flags, direct);
    if (step) {
        *flags = step->left_flags;
        go(walk, step);
        return true;
    }
    step = runtime_seen_place(seen, sp);
    step->pc = 0;
    step->sp = sp;
    step->fp = fp;
    step->entered_flags = walk->flags;
    step->read_count = 0;
    seen->pending = step;
    seen->pending_pc = pc;
    return false;
}

void walk_seen_note_read(struct runtime_seen_steps *seen, uintptr_t address, uintptr_t value)
{
    struct runtime_seen_step *step = seen->pending;
    if (!step)
        return;
    if (step->read_count == RUNTIME_SEEN_READS_MAX) {
        seen->pending = NULL;
        return;
    }
    step->reads[step->read_count].address = address;
    step->reads[step->read_count++].value = value;
}

void walk_seen_classified(struct runtime_seen_steps *seen, const struct runtime_walk *walk, uintptr_t pc)
{
    bool is_elsewhere = (uintptr_t)runtime_walk_pc(&arch_native_arch, walk) != pc; // it stood in a thunk
    if (is_elsewhere || (walk->end.reason == QUT_END_NO_MODULE && !walk_is_known_call(pc)))
        walk_seen_give_up(seen);
}

void walk_seen_keep(struct runtime_seen_steps *seen, const struct runtime_walk *walk, unsigned flags)
{
    struct runtime_seen_step *step = seen->pending;
    seen->pending = NULL;
    if (!step)
        return;
    // Not that of a frame that turned out to be left by a guess, of a signal's, or of an interpreter whose bytecode
    // stands in a register.
    bool has_turned_out = (flags ^ step->entered_flags) & QUT_FRAME_GUESSED;
    bool is_by_register = flags & QUT_FRAME_INTERPRETER && walk->interpreted.method_cfa_bytes == 0;
    if (has_turned_out || is_by_register || flags & QUT_FRAME_SIGNAL || walk->pc_kind != ARCH_PC_RETURN ||
        (walk->regs.valid & WALK_FAST_REGISTERS) != WALK_FAST_REGISTERS)
        return;
    step->outer_pc = (uintptr_t)walk->regs.pc;
    step->outer_sp = (uintptr_t)walk->regs.sp;
    step->outer_fp = (uintptr_t)walk->regs.tracked[ARCH_NATIVE_FP_SLOT];
    step->outer_dex_pc = walk->flags & QUT_FRAME_DEX ? (uintptr_t)walk->dex_pc : 0;
    step->left_flags = (uint8_t)flags;
    step->outer_flags = walk->flags;
    step->stamp = seen->stamp;
    step->pc = seen->pending_pc;
}

bool walk_seen_pass(struct runtime_fast *f, uintptr_t here)
{
    struct runtime_thread *thread = f->thread;
    struct runtime_seen_steps *seen = thread->seen;
    if (!seen || !walk_seen_is_used())
        return false;
    walk_seen_begin(seen, f->modules->epoch, modules_made_generation());
    const struct walk_direct direct = {thread->stack_low, thread->stack_high};
    const struct runtime_seen_step *step = find(seen, f->key, f->sp, f->fp, 0, direct);
    // A guess that led to a caller matters where that is left, which is the slow way's affair.
    const bool is_dex = step && step->outer_flags == QUT_FRAME_DEX;
    if (!step || (step->outer_flags && !is_dex) || (is_dex && f->count == f->max) ||
        arch_native_key(step->outer_pc) == 0 || !walk_local_on_own_stack(thread, step->outer_sp, here))
        return false;
    if (is_dex) {
        f->pcs[f->count++] = step->outer_dex_pc;
        thread->memo.contiguous = false;
    }
    f->sp = step->outer_sp;
    f->fp = step->outer_fp;
    f->ra = step->outer_pc;
    f->key = arch_native_key(step->outer_pc);
    thread->later_link.step = runtime_memo_unknown_step;
    return true;
}
