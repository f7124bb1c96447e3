// SPDX-License-Identifier: Apache-2.0
// The fast ways to leave a frame, for walks on the thread's own stack. They know of a frame only pc, sp and fp.
//
//   links    the thread's cache of rules; what is not in it comes from the module's table
//   follow   the thread's memory of its last walks says where the callers are, if what was read is what it was
//
#ifndef QUT_WALK_WALK_FAST_H
#define QUT_WALK_WALK_FAST_H

#include "libqut/arch/native.h"
#include "libqut/modules/modules.h"
#include "libqut/os/os.h"
#include "libqut/runtime/walk_inline.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum qut_stop {
    WALK_STOP_END,   // the last frame given out is the outermost one
    WALK_STOP_LIMIT, // there is no room for the frame the walk is at
    WALK_STOP_STUCK, // the last frame given out has to be left slowly
};

static inline uintptr_t walk_load_at(uintptr_t base, intptr_t offset_bytes)
{
    return os_load(base + (uintptr_t)offset_bytes);
}

// From a frame of the memo on, as runtime_memo_follow, through frames of a virtual machine that says how they are left.
const struct runtime_memo_frame *walk_fast_follow_machine(const struct runtime_memo_frame *frame,
                                                          const struct runtime_memo_frame *end, uintptr_t *pc);

// From the state of frame `from`, which was given out, as far as the memo goes; `first`, from which on frames are
// followed, was the frame where the walk began or came to the memo. True: the walk has stopped. False: it has come to
// *end.
RUNTIME_WALK_INLINE bool walk_fast_follow(struct runtime_fast *f, const struct runtime_memo *memo,
                                          const struct runtime_memo_frame *first, const struct runtime_memo_frame *from,
                                          enum qut_stop *stop, const struct runtime_memo_frame **end)
{
    const struct runtime_memo_frame *frame, *last = &memo->frames[RUNTIME_MEMO_CAPACITY - 1];
    const struct runtime_memo_frame *room_end = runtime_memo_end_of_room(memo, from, f->max - f->count);
    frame = runtime_memo_follow(from, room_end, f->pcs + f->count);
    if (__builtin_expect(frame < room_end && frame[1].step.ra_offset_bytes & RUNTIME_MEMO_MACHINE, 0))
        frame = walk_fast_follow_machine(frame, room_end, f->pcs + f->count + (frame - from));
    size_t followed_count = (size_t)(frame - from);
    f->count += followed_count;
    f->remembered_count += followed_count + 1;
    if (frame != first)
        f->key = arch_native_key(frame->ra);
    if (frame == last && memo->complete) {
        f->remember = RUNTIME_REMEMBER_DONE;
        *stop = WALK_STOP_END;
        return true;
    }
    if (f->count == f->max && frame < last && runtime_memo_holds(frame + 1)) {
        f->key = arch_native_key(frame[1].ra);
        f->remember = RUNTIME_REMEMBER_DONE;
        *stop = WALK_STOP_LIMIT;
        return true;
    }
    *end = frame;
    f->sp = frame->sp;
    if (frame->step.fp_offset_bytes & RUNTIME_MEMO_LIVE) {
        f->fp = frame->fp;
        return false;
    }
    // No frame looked at an fp that is not live: it is what was read last, if anything was.
    for (; frame != first; frame--)
        if (runtime_memo_fp_offset_bytes(frame->step)) {
            f->fp = walk_load_at(frame->sp, runtime_memo_fp_offset_bytes(frame->step));
            break;
        }
    return false;
}

// From the frame the walk is at.
enum qut_stop walk_fast_run_links(struct runtime_fast *f);
enum qut_stop walk_fast_run_and_remember(struct runtime_fast *f);

static inline enum qut_stop walk_fast_run(struct runtime_fast *f)
{
    return f->remember == RUNTIME_REMEMBER ? walk_fast_run_and_remember(f) : walk_fast_run_links(f);
}

// The memo gets its new state: the walk has stopped, or goes on where it cannot be remembered.
void walk_fast_end_memo(struct runtime_fast *f, enum qut_stop stop);

static inline void walk_fast_end(struct runtime_fast *f, enum qut_stop stop)
{
    if (f->remember == RUNTIME_REMEMBER)
        walk_fast_end_memo(f, stop);
}

#pragma GCC visibility pop

#endif
