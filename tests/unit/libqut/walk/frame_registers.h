// SPDX-License-Identifier: Apache-2.0
// What a walk knows at its frame, as rules are evaluated with.
#ifndef TESTS_UNIT_LIBQUT_WALK_FRAME_REGISTERS_H
#define TESTS_UNIT_LIBQUT_WALK_FRAME_REGISTERS_H

#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/walk.h"

static inline struct arch_frame_regs frame_registers(const struct runtime_walk *walk)
{
    struct arch_frame_regs regs;
    memset(&regs, 0, sizeof regs);
    regs.pc = walk->regs.pc;
    regs.valid = walk->regs.valid;
    regs.reg[arch_native_arch.sp_reg] = walk->regs.sp;
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++)
        regs.reg[arch_native_arch.tracked[slot]] = walk->regs.tracked[slot];
    return regs;
}

#endif
