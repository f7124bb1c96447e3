// SPDX-License-Identifier: Apache-2.0
// One frame at a time. Nothing is remembered between the calls but the walk itself, and what it has asked.
#include <qut/local.h>

#include "libqut/walk/noted_walk.h"
#include "libqut/walk/walk_local.h"

struct cursor {
    struct runtime_walk walk;
    struct modules_jit_asked jit;
    uint32_t unlisted; // walk_local.h
};
static_assert(sizeof(struct cursor) <= sizeof(struct qut_cursor), "the cursor's size is part of the ABI");

static struct runtime_walk *walk_of(struct qut_cursor *cursor)
{
    return &((struct cursor *)cursor->opaque)->walk;
}

static void has_asked_nothing(struct qut_cursor *cursor)
{
    ((struct cursor *)cursor->opaque)->jit = (struct modules_jit_asked){0};
    ((struct cursor *)cursor->opaque)->unlisted = 0;
}

// capture.S calls it.
void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture);

void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture)
{
    walk_local_begin_at_capture(walk_of(cursor), capture);
    has_asked_nothing(cursor);
}

void qut_cursor_context(struct qut_cursor *cursor, const void *ucontext)
{
    walk_local_begin_at_context(walk_of(cursor), ucontext);
    has_asked_nothing(cursor);
}

void walk_cursor_at(struct qut_cursor *cursor, const struct arch_capture *capture, const void *ucontext)
{
    if (ucontext)
        qut_cursor_context(cursor, ucontext);
    else
        walk_cursor_captured(cursor, capture);
}

// Between two calls nothing is held: each finds the modules anew.
static bool enter(struct walk_local *local, struct qut_cursor *cursor, uintptr_t here)
{
    struct runtime_thread *thread = runtime_thread_self();
    struct runtime_walk *walk = walk_of(cursor);
    walk_local_begin(local, thread, modules_enter(thread), (uintptr_t)walk->regs.sp, here);
    local->jit = ((const struct cursor *)cursor->opaque)->jit;
    local->unlisted = ((const struct cursor *)cursor->opaque)->unlisted;
    local->jit.held = NULL; // the list may be another one by now, in the same place
    return local->modules || walk_local_not_started(walk);
}

static void leave(const struct walk_local *local, struct qut_cursor *cursor)
{
    ((struct cursor *)cursor->opaque)->jit = local->jit;
    ((struct cursor *)cursor->opaque)->unlisted = local->unlisted;
    modules_leave(local->thread);
}

// False: there is no frame here, and the walk has ended.
static bool classify(struct walk_local *local, struct runtime_walk *walk)
{
    walk_local_classify(local, walk);
    if (!runtime_is_exchanged(walk))
        return true;
    if (!walk_local_leave_exchanged(local, walk))
        return false;
    walk_local_classify(local, walk);
    return !runtime_is_exchanged(walk) || walk_local_no_progress(walk);
}

void qut_cursor_frame(struct qut_cursor *cursor, struct qut_frame *frame)
{
    struct runtime_walk *walk = walk_of(cursor);
    if (!walk->classified) {
        struct walk_local local;
        if (enter(&local, cursor, (uintptr_t)__builtin_frame_address(0)))
            classify(&local, walk);
        leave(&local, cursor);
    }
    runtime_describe(&arch_native_arch, walk, frame);
}

int qut_cursor_next(struct qut_cursor *cursor)
{
    struct runtime_walk *walk = walk_of(cursor);
    struct walk_local local;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool moved = enter(&local, cursor, here) && classify(&local, walk) && walk_local_step(&local, walk, here) &&
                 classify(&local, walk);
    leave(&local, cursor);
    return moved;
}

int qut_cursor_register(const struct qut_cursor *cursor, unsigned dwarf_register, uint64_t *value)
{
    const struct runtime_walk *walk = &((const struct cursor *)cursor->opaque)->walk;
    struct walk_local local = {0}; // no part of the stack is sure: a signal context is read carefully
    return runtime_register(&arch_native_arch, &walk_local_ops, &local, walk, dwarf_register, value);
}

void qut_cursor_end(const struct qut_cursor *cursor, struct qut_end *end)
{
    *end = ((const struct cursor *)cursor->opaque)->walk.end;
}
