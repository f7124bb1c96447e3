// SPDX-License-Identifier: Apache-2.0
// The agent: a shared object that is preloaded into a program, samples its threads by ticks, and stands between it and
// libc where something happens that is worth a sample. No code is patched. What the program sees of libc is what it
// would see without: results, errno, masks, descriptors.
//
//   start.c        constructor, fork, end
//   waiting.c      a child of fork that has stored nothing yet
//   tell.c         what the recorder is told
//   folder.c       where there is none: a folder of segments
//   real.c         libc's own functions
//   blocked.c      the interval around a call that may wait
//   locks.c        which thread holds what others wait for, and which one woke them
//   hooks/         one family of functions each, exported under libc's names
//
// A hook looks like this:
//
//     EXPORTED ssize_t read(int fd, void *bytes, size_t size)
//     {
//         if (!agent_blocked_enter(AGENT_SYNC_IO, QUT_SAMPLE_READ))   agent_enter; guard, clock, perhaps a sample
//             return agent_real()->read(fd, bytes, size);
//         return agent_blocked_leave(agent_real()->read(fd, bytes, size), fd, size);   keeps errno; agent_leave
//     }
#ifndef AGENT_INSIDE_H
#define AGENT_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <qut/sample.h>

#include "formats/qut_agent.h"

#define EXPORTED __attribute__((visibility("default")))
#pragma GCC visibility push(hidden)

// The calling thread's. Zero in a thread that was not seen yet.
struct agent_thread {
    uintptr_t inside;   // where the stack was in the hook that is under way: what libqut and the agent call themselves
                        // goes straight to libc. 0: none is
    uint32_t is_agents; // a thread of the agent's own: never sampled
    uint32_t in_child;  // between vfork and exec: memory is the parent's, nothing of ours may be changed
    uint32_t tid;       // 0: not asked for yet
    uint64_t hidden_mask; // bit 0: the program believes that it blocks the signal of our ticks
};
extern _Thread_local struct agent_thread agent_thread __attribute__((tls_model("initial-exec")));

// What is on: 0 before the constructor has run, after the end, in children that are not followed, and where we have no
// recorder to tell.
extern uint32_t agent_watched;               // by __atomic_load_n and __atomic_store_n
extern struct agent_settings agent_settings; // constant once agent_watched is not 0

// A hook is under way in the calling thread, and another one was called with its frame at `here`: whether the first was
// left for good meanwhile, by cancellation, an exception, or a jump out of a handler. Then what it had begun is ended.
bool agent_was_left(uintptr_t here);

// Beside enum agent_sync: something waits for a moment at which the program can be asked to start a thread. As no
// handler may allocate, each call of malloc is one; so these are watched as well.
#define AGENT_THREAD_IS_DUE (UINT32_C(1) << 31)
bool agent_thread_is_due(uint32_t what); // starts it; whether `what` is watched besides

// Whether a hook may do more than call libc: `what` is watched, and the thread is not inside another hook (a handler
// that interrupted one goes straight through). With true, agent_leave must follow.
__attribute__((always_inline)) static inline bool agent_enter(uint32_t what)
{
    const uint32_t watched = __atomic_load_n(&agent_watched, __ATOMIC_RELAXED);
    if (__builtin_expect((watched & what) == 0, 1))
        return false;
    if (__builtin_expect((watched & AGENT_THREAD_IS_DUE) != 0, 0) && !agent_thread_is_due(what))
        return false;
    struct agent_thread *thread = &agent_thread;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0); // of the hook
    if (__builtin_expect(thread->inside != 0, 0) && (thread->in_child || !agent_was_left(here)))
        return false;
    if (__builtin_expect((thread->is_agents | thread->in_child) != 0, 0))
        return false;
    thread->inside = here;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static inline void agent_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    agent_thread.inside = 0;
}

extern _Atomic uint32_t agent_recorded_pid; // 0: none

uint32_t agent_tid(void); // of the calling thread, without a system call where it was asked before

// Whether this very process is the one that is recorded: not so in children of vfork, which share its memory, nor in
// those of clone. One system call.
bool agent_is_on_here(void);
// Whether what this process begins is recorded as well: true in children of vfork, too.
bool agent_follows(void);
// The signal of our ticks: what the program does with it is kept from the kernel. 0: there is none.
extern _Atomic int agent_signal;

// The calling thread has ticks from now on, and again; and has none any more. Kept quiet by the caller.
void agent_ticks_begin(void);
void agent_ticks_end(void);

// Between these two the program has no part in what the calling thread does: no handler of it runs, no cancellation
// acts, hooks go straight to libc; errno is kept. Nests.
struct agent_quiet {
    uint64_t blocked; // signals, before
    int saved_errno, cancel_state;
    uintptr_t inside;
};
void agent_quiet_begin(struct agent_quiet *quiet);
void agent_quiet_end(const struct agent_quiet *quiet);
static inline bool agent_is_quiet(void)
{
    return agent_thread.inside == UINTPTR_MAX; // further out than any frame: it never seems to have been left
}

#pragma GCC visibility pop

#endif
