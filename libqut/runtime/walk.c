// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/walk.h"

#include <string.h>

#include "libqut/runtime/walk_inline.h"

void runtime_walk_begin(const struct arch *arch, struct runtime_walk *walk, const struct arch_frame_regs *regs,
                        enum arch_pc_kind kind)
{
    walk->regs.pc = regs->pc;
    walk->regs.sp = regs->reg[arch->sp_reg];
    walk->regs.valid = regs->valid;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        walk->regs.tracked[slot] = regs->reg[arch->tracked[slot]];
    runtime_begin(walk, kind);
    walk->top = regs;
}

bool runtime_walk_register(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                           const struct runtime_walk *walk, unsigned reg, uint64_t *value)
{
    return runtime_register(arch, ops, context, walk, reg, value);
}

static void find_rule(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                      struct runtime_walk *walk)
{
    runtime_classify(arch, ops, context, walk);
    if (runtime_is_traced(walk) && runtime_find_true_return(arch, ops, context, walk))
        runtime_classify(arch, ops, context, walk);
}

// False: there is no frame here, and the walk has ended.
static bool classify(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                     struct runtime_walk *walk)
{
    if (!walk->classified)
        find_rule(arch, ops, context, walk);
    if (!runtime_is_exchanged(walk))
        return true;
    if (!runtime_leave(arch, ops, context, walk))
        return false;
    find_rule(arch, ops, context, walk);
    return !runtime_is_exchanged(walk) || runtime_walk_ends(arch, walk, QUT_END_NO_PROGRESS);
}

void runtime_walk_frame(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                        struct runtime_walk *walk, struct qut_frame *frame)
{
    classify(arch, ops, context, walk);
    runtime_describe(arch, walk, frame);
}

bool runtime_walk_step(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                       struct runtime_walk *walk)
{
    return classify(arch, ops, context, walk) && runtime_leave(arch, ops, context, walk) &&
           classify(arch, ops, context, walk);
}

enum runtime_call_site runtime_read_call_site(const struct arch *arch,
                                              size_t (*read_code)(void *context, uint64_t pc, void *bytes, size_t size),
                                              void *context, uint64_t pc)
{
    // Files that came with a snapshot may have zeros where their code was (AOSP's have).
    static const uint8_t none[ARCH_CALL_BYTES];
    uint8_t bytes[ARCH_CALL_BYTES];
    if (arch->call_site_count == 0)
        return RUNTIME_CALL_SITE;
    if (read_code(context, pc - sizeof bytes, bytes, sizeof bytes) != sizeof bytes ||
        memcmp(bytes, none, sizeof bytes) == 0)
        return RUNTIME_CALL_SITE_UNREADABLE;
    return arch_is_call_site(arch, bytes) ? RUNTIME_CALL_SITE : RUNTIME_CALL_SITE_NOT;
}

bool runtime_is_trampoline(const struct arch *arch,
                           size_t (*read_code)(void *context, uint64_t pc, void *bytes, size_t size), void *context,
                           uint64_t pc)
{
    uint8_t code[sizeof arch->trampolines->code];
    size_t count = read_code(context, pc, code, sizeof code);
    for (unsigned i = 0; i < arch->trampoline_count; i++) {
        const struct arch_trampoline *t = &arch->trampolines[i];
        if (t->entries[0].code_offset == 0 && t->code_bytes <= count && memcmp(code, t->code, t->code_bytes) == 0)
            return true;
    }
    return false;
}
