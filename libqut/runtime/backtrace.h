// SPDX-License-Identifier: Apache-2.0
// What a whole walk of the calling thread works with. Three ways to leave a frame, each as true as the next, tried in
// this order:
//
//   follow       the thread's memory of its last walks says where its caller's frame is, if what was read is unchanged
//   links        the thread's cache of rules; what is not in it comes from the module's table
//   slowly       everything else: signal frames, rarer rules, code without rules, stacks that are not the thread's own
//
// The first two (walk_fast.c) know of a frame only pc, sp and fp. Where it turns out that another register was needed,
// the walk is done again, slowly.
#ifndef QUT_RUNTIME_BACKTRACE_H
#define QUT_RUNTIME_BACKTRACE_H

#include "libqut/runtime/walk_local.h"

enum qut_stop {
    STOP_END,       // the last frame given out is the outermost one
    STOP_LIMIT,     // there is no room for the frame the walk is at
    STOP_STUCK,     // the last frame given out has to be left slowly
    STOP_FORGETFUL, // the frame the walk is at can be given out, but the memo is to be left alone from here on
    STOP_NOT,
};

struct qut_backtrace {
    uintptr_t *pcs;
    size_t max;
    size_t count;                      // frames given out
    const struct qut_capture *capture; // where it begins,
    const void *ucontext;              // ... or here
    uintptr_t here;                    // on the running stack
    struct qut_thread *thread;         // NULL: not registered
    const struct qut_modules *modules;
    const struct qut_module *module; // found last
    // The frame the walk is at, as far as the fast ways know it.
    struct qut_memo_frame at;
    uintptr_t key; // one more than the pc to look up
    bool is_fast;  // else only the slow way is taken
    bool remembers;
    bool forgot;       // registers but pc, sp and fp
    bool memo_is_done; // the memo has its new state
    uint8_t switches;  // what the slow way has to know from one time to the next
    uint32_t guessed_frame;
    size_t remembered_count, slow_count; // of the frames given out
    struct qut_end end;
};

static inline uintptr_t qut_key_of(uintptr_t ra)
{
    return (uintptr_t)qut_plain_pc(&qut_native_arch, qut_native_strip(ra));
}

// From the frame the walk is at, which is on the thread's own stack and was not given out yet. b->remembers: was asked
// of the memo.
enum qut_stop qut_walk_fast(struct qut_backtrace *b);

// Tells the memo that nothing more comes: the walk has stopped, or goes on where it cannot be remembered.
void qut_walk_fast_end(struct qut_backtrace *b, enum qut_stop stop);

#endif
