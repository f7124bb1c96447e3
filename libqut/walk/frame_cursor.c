// SPDX-License-Identifier: Apache-2.0
// One frame at a time. Nothing is remembered between the calls but the walk itself.
#include <qut/local.h>

#include "libqut/walk/walk_local.h"

static_assert(sizeof(struct runtime_walk) <= sizeof(struct qut_cursor), "the cursor's size is part of the ABI");

static struct runtime_walk *walk_of(struct qut_cursor *cursor)
{
    return (struct runtime_walk *)cursor->opaque;
}

// capture.S calls it.
void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture);

void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture)
{
    walk_local_begin_at_capture(walk_of(cursor), capture);
}

void qut_cursor_context(struct qut_cursor *cursor, const void *ucontext)
{
    walk_local_begin_at_context(walk_of(cursor), ucontext);
}

// Between two calls nothing is held: each finds the modules anew.
static bool enter(struct walk_local *local, struct runtime_walk *walk, uintptr_t here)
{
    struct runtime_thread *thread = runtime_thread_self();
    walk_local_begin(local, thread, modules_enter(thread), (uintptr_t)walk->regs.sp, here);
    return local->modules || walk_local_not_started(walk);
}

void qut_cursor_frame(struct qut_cursor *cursor, struct qut_frame *frame)
{
    struct runtime_walk *walk = walk_of(cursor);
    if (!walk->classified) {
        struct walk_local local;
        if (enter(&local, walk, (uintptr_t)__builtin_frame_address(0)))
            walk_local_classify(&local, walk);
        modules_leave(local.thread);
    }
    runtime_describe(&arch_native_arch, walk, frame);
}

int qut_cursor_next(struct qut_cursor *cursor)
{
    struct runtime_walk *walk = walk_of(cursor);
    struct walk_local local;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool moved = enter(&local, walk, here) && walk_local_step(&local, walk, here);
    modules_leave(local.thread);
    return moved;
}

int qut_cursor_register(const struct qut_cursor *cursor, unsigned dwarf_register, uint64_t *value)
{
    const struct runtime_walk *walk = (const struct runtime_walk *)cursor->opaque;
    struct walk_local local = {0}; // no part of the stack is sure: a signal context is read carefully
    return runtime_register(&arch_native_arch, &walk_local_ops, &local, walk, dwarf_register, value);
}

void qut_cursor_end(const struct qut_cursor *cursor, struct qut_end *end)
{
    *end = ((const struct runtime_walk *)cursor->opaque)->end;
}
