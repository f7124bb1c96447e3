// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: interrupted in a thunk, which a call tracer put before a function (formats/qut_calls.md).
// Nothing describes that code, but the thunk says where its function would be: there the walk begins.
#ifndef QUT_RUNTIME_WALK_THUNK_INLINE_H
#define QUT_RUNTIME_WALK_THUNK_INLINE_H

#include "formats/qut_calls_thunk.h"

// The frame's pc becomes that of the function, and its sp what it would be there.
RUNTIME_WALK_OUTLINE bool runtime_leave_thunk(const struct arch *arch, const struct runtime_walk_ops *ops,
                                              void *context, struct runtime_walk *walk)
{
    const uint64_t pc = walk->regs.pc, step = QUT_CALLS_THUNK_ALIGNMENT;
    struct qut_calls_origin origin;
    // A thunk may say that its function is in another one, but not for ever.
    if (!arch->has_call_thunks || walk->pc_kind != ARCH_PC_EXACT || walk->switches == RUNTIME_SWITCHES_MAX)
        return false;
    for (uint64_t at = (pc | (step - 1)) + 1; at - pc < QUT_CALLS_THUNK_BYTES_MAX; at += step) {
        if (ops->read_code(context, at, &origin, sizeof origin) != sizeof origin)
            return false;
        if (!qut_calls_origin_is_of(&origin, at, pc))
            continue;
        unsigned lower_bytes;
        walk->regs.pc = qut_calls_origin_pc(&origin, at, pc, arch->word_bytes, &lower_bytes);
        walk->regs.sp += lower_bytes;
        walk->switches++;
        return true;
    }
    return false;
}

#endif
