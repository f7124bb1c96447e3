// SPDX-License-Identifier: Apache-2.0
// The interval around a call of libc's that may wait: one record with a stack at both edges, and no tick in between.
// A hook that is cancelled, or jumped out of by a handler, does not come back to end it; agent_was_left does that in
// the next hook that this thread calls from further out, agent_blocked_thread_ends at the latest.
#ifndef AGENT_BLOCKED_H
#define AGENT_BLOCKED_H

#include "agent/inside.h"
#include "agent/locks.h"

#pragma GCC visibility push(hidden)

// Called by hooks directly: their own frame is the innermost one of the sample. Keep errno.
void agent_blocked_begin(uint32_t kind); // enum qut_sample_kind
// `total`: QUT_TOTAL_BLOCKED_CALLS, QUT_TOTAL_LOCK_WAITS or QUT_TOTAL_NONE.
void agent_blocked_end(uint32_t total, const struct qut_extra *extras, uint32_t extra_count);

// What a call on a descriptor says of itself: `result` as it was returned. fd below 0: it has none; size 0: none.
void agent_blocked_end_call(int fd, size_t size, int64_t result);

// A wait for a lock, or for what another thread does.
struct blocked_lock {
    struct lock_wait wait;
    uint32_t kind;      // QUT_SAMPLE_LOCK, QUT_SAMPLE_WAIT
    uint32_t owner_tid; // its holder when the wait began; 0: none, or not known
};
// Not is_private: another process may release it, which is not seen here.
void agent_blocked_lock_begin(struct blocked_lock *blocked, const void *lock, uint32_t kind, uint32_t owner_tid,
                              bool is_private);
// `result`: 0, or why it was not got.
void agent_blocked_lock_end(struct blocked_lock *blocked, const void *lock, int result);

// The calling thread leaves the hook that is under way: its interval ends here.
void agent_blocked_leave_for_good(void);
// The calling thread ends: what it left open is ended, and the thread that joins it is told its waker.
void agent_blocked_thread_ends(void);

// ---- hooks of calls on descriptors are these two lines around libc's function

__attribute__((always_inline)) static inline bool agent_blocked_enter(uint32_t what, uint32_t kind)
{
    if (!agent_enter(what))
        return false;
    agent_blocked_begin(kind);
    return true;
}

__attribute__((always_inline)) static inline int64_t agent_blocked_leave(int64_t result, int fd, size_t size)
{
    agent_blocked_end_call(fd, size, result);
    agent_leave();
    return result;
}

// Whether a call with a mask of its own is to be made again. A tick that came at its end took that mask away, which is
// for one delivery: before the signal that ended the call, so that this one is blocked again. Keeps errno.
bool agent_blocked_again(int64_t result, const sigset_t *mask);
// A mask for the time of such a call; with traps (agent/calls), without their signal: a handler that runs meanwhile may
// meet one. `room` holds it then.
const sigset_t *agent_blocked_mask(const sigset_t *mask, sigset_t *room);

#pragma GCC visibility pop

#endif
