// SPDX-License-Identifier: Apache-2.0
// One frame at a time. Nothing is remembered between the calls but the walk itself.
#include <qut/local.h>

#include "libqut/runtime/walk_local.h"

static_assert(sizeof(struct qut_walk) <= sizeof(struct qut_cursor), "the cursor's size is part of the ABI");

static struct qut_walk *walk_of(struct qut_cursor *cursor)
{
    return (struct qut_walk *)cursor->opaque;
}

// capture.S calls it.
void qut_cursor_captured(struct qut_cursor *cursor, const struct qut_capture *capture);

void qut_cursor_captured(struct qut_cursor *cursor, const struct qut_capture *capture)
{
    qut_local_begin_at_capture(walk_of(cursor), capture);
}

void qut_cursor_context(struct qut_cursor *cursor, const void *ucontext)
{
    qut_local_begin_at_context(walk_of(cursor), ucontext);
}

// Between two calls nothing is held: each finds the modules anew.
static bool enter(struct qut_local *local, struct qut_walk *walk, uintptr_t here)
{
    struct qut_thread *thread = qut_thread_self();
    qut_local_begin(local, thread, qut_modules_enter(thread), (uintptr_t)walk->regs.sp, here);
    return local->modules || qut_local_not_started(walk);
}

void qut_cursor_frame(struct qut_cursor *cursor, struct qut_frame *frame)
{
    struct qut_walk *walk = walk_of(cursor);
    if (!walk->classified) {
        struct qut_local local;
        if (enter(&local, walk, (uintptr_t)__builtin_frame_address(0)))
            qut_local_classify(&local, walk);
        qut_modules_leave(local.thread);
    }
    qut_describe(&qut_native_arch, walk, frame);
}

int qut_cursor_next(struct qut_cursor *cursor)
{
    struct qut_walk *walk = walk_of(cursor);
    struct qut_local local;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool moved = enter(&local, walk, here) && qut_local_step(&local, walk, here);
    qut_modules_leave(local.thread);
    return moved;
}

int qut_cursor_register(const struct qut_cursor *cursor, unsigned dwarf_register, uint64_t *value)
{
    const struct qut_walk *walk = (const struct qut_walk *)cursor->opaque;
    struct qut_local local = {0}; // no part of the stack is sure: a signal context is read carefully
    return qut_register(&qut_native_arch, &qut_local_ops, &local, walk, dwarf_register, value);
}

void qut_cursor_end(const struct qut_cursor *cursor, struct qut_end *end)
{
    *end = ((const struct qut_walk *)cursor->opaque)->end;
}
