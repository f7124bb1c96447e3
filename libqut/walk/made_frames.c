// SPDX-License-Identifier: Apache-2.0
// Frames of code that was made at run time, one behind another, such as JavaScript's: as long as frame pointers lead
// from call to call within memory of that kind, a frame is two loads and a look at what was found there before. All of
// it is what runtime_guess_caller would find, which goes on where this stops.
#include "libqut/walk/made_frames.h"

#include "libqut/walk/known_code.h"

// A frame record, which lies on one side of fp, in the part of the stack that can be read directly.
static bool is_there(const struct walk_local *local, uintptr_t fp)
{
    enum { RECORD_BYTES = 2 * sizeof(uintptr_t) };
    return fp >= local->direct.low && fp - local->direct.low >= RECORD_BYTES && fp < local->direct.high &&
           local->direct.high - fp >= RECORD_BYTES;
}

// Nobody describes code there: no module, no compiler that lists its code, no virtual machine that says all about it.
static bool is_made_code(const struct walk_local *local, uintptr_t pc)
{
    return !modules_at(local->modules, pc) && modules_is_code(pc);
}

static bool may_describe_code(void)
{
    return modules_jit_is_known() || modules_machine_is_known();
}

size_t walk_made_frames(struct walk_local *local, struct runtime_walk *walk, uintptr_t *pcs, uintptr_t *sps, size_t max)
{
    const struct arch *arch = &arch_native_arch;
    const struct arch_frame_record *record = &arch->frame_record;
    const uint64_t known = (uint64_t)1 << arch->sp_reg | (uint64_t)1 << arch->tracked[ARCH_NATIVE_FP_SLOT];
    const uintptr_t word = sizeof(uintptr_t);
    uintptr_t sp = (uintptr_t)walk->regs.sp, fp = (uintptr_t)walk->regs.tracked[ARCH_NATIVE_FP_SLOT];
    uintptr_t pc = (uintptr_t)runtime_plain_pc(arch, walk->regs.pc);
    if (!record->is_known || !record->cfa_is_known || !(walk->flags & QUT_FRAME_GUESSED) || walk->classified ||
        walk->pc_kind != ARCH_PC_RETURN || (walk->regs.valid & known) != known || !local->up_to_date ||
        !is_made_code(local, (uintptr_t)arch_lookup_pc(pc, ARCH_PC_RETURN)) || may_describe_code())
        return 0;
    size_t count = 0;
    while (count < max) {
        // ra = *(fp + ra_words); fp' = *(fp + fp_words); cfa = fp + cfa_words
        uintptr_t cfa = fp + (uintptr_t)(record->cfa_words * (intptr_t)word);
        if (fp < sp || fp - sp > RUNTIME_GUESSED_FRAME_BYTES_MAX || fp % word || cfa <= sp || !is_there(local, fp))
            break;
        uintptr_t ra = (uintptr_t)arch_native_strip(os_load(fp + (uintptr_t)(record->ra_words * (intptr_t)word)));
        uintptr_t lookup_pc = (uintptr_t)arch_lookup_pc(runtime_plain_pc(arch, ra), ARCH_PC_RETURN);
        if (!walk_is_known_call(runtime_plain_pc(arch, ra)) || (ra != pc && !is_made_code(local, lookup_pc)))
            break;
        sp = cfa;
        fp = os_load(fp + (uintptr_t)(record->fp_words * (intptr_t)word));
        pc = ra;
        if (sps)
            sps[count] = sp;
        pcs[count++] = lookup_pc;
    }
    if (count == 0)
        return 0;
    walk->regs.pc = pc;
    walk->regs.sp = sp;
    walk->regs.tracked[ARCH_NATIVE_FP_SLOT] = fp;
    walk->regs.valid = known;
    walk->index += (uint32_t)count;
    return count;
}
