// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: the code that signal handlers return to, and that threads begin in.
#ifndef QUT_RUNTIME_WALK_TRAMPOLINE_INLINE_H
#define QUT_RUNTIME_WALK_TRAMPOLINE_INLINE_H

// Whether the thread returns to, or stands in, code that is never called. Its bytes decide: unwind information is
// missing for signal trampolines in musl and several vdsos, and pc - 1 can belong to another function. False too, and
// an end, where a stack begins.
RUNTIME_WALK_OUTLINE bool runtime_find_trampoline(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                  void *context, struct runtime_walk *walk)
{
    if (!runtime_knows_sp(arch, walk))
        return false;
    uint64_t pc = runtime_plain_pc(arch, walk->regs.pc), sp = walk->regs.sp;
    // The code from the furthest entry before pc on, read once.
    enum { BEFORE_BYTES = ARCH_TRAMPOLINE_OFFSET_MAX, AFTER_BYTES = sizeof arch->trampolines->code };
    uint8_t code[BEFORE_BYTES + AFTER_BYTES];
    unsigned before_bytes = walk->pc_kind == ARCH_PC_EXACT ? BEFORE_BYTES : 0;
    size_t code_bytes = ops->read_code(context, pc - before_bytes, code, before_bytes + AFTER_BYTES);
    if (code_bytes <= before_bytes && before_bytes) { // pc stands near the beginning of what is mapped
        before_bytes = 0;
        code_bytes = ops->read_code(context, pc, code, AFTER_BYTES);
    }
    for (unsigned i = 0; i < arch->trampoline_count; i++) {
        const struct arch_trampoline *t = &arch->trampolines[i];
        unsigned entries = walk->pc_kind == ARCH_PC_EXACT ? t->entry_count : 1;
        for (unsigned e = 0; e < entries; e++) {
            unsigned offset = t->entries[e].code_offset;
            if (offset > before_bytes || before_bytes - offset + t->code_bytes > code_bytes ||
                memcmp(code + before_bytes - offset, t->code, t->code_bytes) != 0)
                continue;
            if (!t->layout)
                return runtime_walk_ends(arch, walk, QUT_END_OUTERMOST);
            walk->trampoline = t;
            walk->trampoline_block = (sp + (uint64_t)(int64_t)t->entries[e].registers_offset) & runtime_word_mask(arch);
            walk->flags |= QUT_FRAME_SIGNAL;
            return true;
        }
    }
    return false;
}

#endif
