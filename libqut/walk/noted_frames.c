// SPDX-License-Identifier: Apache-2.0
// Of a walk that was just taken: stack pointers of its frames, and what of the stack is there.
#include <qut/local.h>

#include "libqut/runtime/tiers.h"
#include "libqut/runtime/walking_thread.h"
#include "libqut/walk/noted_walk.h"

static bool take_remembered(size_t count, struct qut_frame *frames)
{
    const struct runtime_thread *thread = runtime_thread_self();
    struct runtime_last_walk last;
    if (!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 1 ||
        !runtime_last_walk_inside(thread, &last) || last.frame_count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        frames[i].sp = last.frames[i].sp;
    return true;
}

// It has to come the same way.
static bool take_walked(const struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                        const void *ucontext, struct qut_cursor *cursor, struct qut_frame *frames)
{
    struct qut_frame frame;
    walk_cursor_at(cursor, capture, ucontext);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !qut_cursor_next(cursor))
            return false;
        qut_cursor_frame(cursor, &frame);
        if (frame.lookup_pc != notes->pcs[i] && frame.pc != notes->pcs[i])
            return false;
        frames[i].sp = frame.sp;
    }
    return true;
}

void walk_note_places(const struct walk_noted_walk *notes, size_t count, bool is_interrupted, struct qut_frame *frames)
{
    for (size_t i = 0; i < count; i++) {
        frames[i].lookup_pc = notes->pcs[i];
        frames[i].flags = i < notes->noted_count ? notes->flags[i] : 0;
    }
    if (is_interrupted)
        frames[0].flags |= QUT_FRAME_INTERRUPTED;
}

bool walk_note_frames(const struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                      const void *ucontext, struct qut_cursor *cursor, struct qut_frame *frames)
{
    if (!take_remembered(count, frames) && !take_walked(notes, count, capture, ucontext, cursor, frames))
        return false;
    walk_note_places(notes, count, ucontext != NULL, frames);
    return true;
}

bool walk_has_on_own_stack(uintptr_t address, size_t size)
{
    const struct runtime_thread *thread = runtime_thread_self();
    return thread && address >= thread->stack_low && address < thread->stack_high &&
           thread->stack_high - address >= size;
}
