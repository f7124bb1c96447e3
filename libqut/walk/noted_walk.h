// SPDX-License-Identifier: Apache-2.0
// A walk for the trace store: it says what its frames are, holds on to what was walked until the store has taken it,
// and its state does not lie on the stack.
#ifndef QUT_WALK_NOTED_WALK_H
#define QUT_WALK_NOTED_WALK_H

#include "libqut/arch/native.h"
#include "libqut/modules/modules.h"

#pragma GCC visibility push(hidden)

struct walk_noted_walk {
    const struct modules *modules; // what modules_enter gave; NULL: not started
    uintptr_t *pcs;
    size_t max;
    // enum qut_frame_flag of each frame below noted_count; those further out are plain callers, and so is every frame
    // that the fast ways gave, but frame 0 of a context. There is room for max + 1.
    uint8_t *flags;
    // Stack pointers of those below noted_count; 0 of those that the fast ways gave. Room for max. NULL: nobody asks.
    uintptr_t *sps;
    size_t noted_count;
    struct qut_end end;
    _Alignas(uint64_t) unsigned char place[520]; // struct backtrace
};

// As qut_backtrace_context or, where ucontext is NULL, qut_backtrace; between modules_enter and modules_leave,
// which are the caller's. Until the latter, what walk_nodes gives stays as it is. Signal-safe.
size_t walk_take_notes(struct walk_noted_walk *notes, const struct arch_capture *capture, const void *ucontext);

// A cursor where such a walk begins, in the caller's memory. Signal-safe.
struct qut_cursor;
void walk_cursor_at(struct qut_cursor *cursor, const struct arch_capture *capture, const void *ucontext);

// The frames of such a walk, `count` of them and at most WALK_NOTED_MAX, with their stack pointers, which the thread's
// memory of its walks has, mostly; else they are walked once more, in *cursor. False: that went another way.
// Signal-safe.
enum { WALK_NOTED_MAX = 4096 };
struct qut_frame;
bool walk_note_frames(const struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                      const void *ucontext, struct qut_cursor *cursor, struct qut_frame *frames);

// What is noted of the frames themselves, without their stack pointers. Signal-safe.
void walk_note_places(const struct walk_noted_walk *notes, size_t count, bool is_interrupted, struct qut_frame *frames);

// Whether that memory is a part of the calling thread's stack that is known to be there. Signal-safe.
bool walk_has_on_own_stack(uintptr_t address, size_t size);

#pragma GCC visibility pop

#endif
