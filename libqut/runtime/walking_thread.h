// SPDX-License-Identifier: Apache-2.0
// What a registered thread owns: the bounds of its stack, what it remembers of its walks, and the mark that it is
// walking.
#ifndef QUT_RUNTIME_WALKING_THREAD_H
#define QUT_RUNTIME_WALKING_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <qut/frame.h>

#include "libqut/os/thread_word.h"
#include "libqut/runtime/hashed_rules.h"
#include "libqut/runtime/known_rules.h"
#include "libqut/runtime/link_cache.h"
#include "libqut/runtime/memo.h"
#include "libqut/runtime/near_tables.h"
#include "libqut/runtime/seen_steps.h"
#include "libqut/runtime/tiers.h"
#include "libqut/runtime/trail.h"

struct modules;
struct walk_noted_walk;

enum { RUNTIME_JIT_BYTES = 6144 };

// What the memo does in this walk.
enum runtime_remember {
    RUNTIME_REMEMBER_NOT,
    RUNTIME_REMEMBER,
    RUNTIME_REMEMBER_DONE, // no more: it has its new state
};

// How the next walk begins.
enum runtime_begin {
    RUNTIME_BEGIN_FAST,
    RUNTIME_BEGIN_SLOWLY, // the fast ways would lack registers
    RUNTIME_BEGIN_TRAIL,  // the same, and a trail is made
};

// A call thunk's largest form behind the pc, with what says whose it is, and some bytes before.
enum { RUNTIME_CODE_WINDOW_BYTES = 288 };

// A walk by the fast ways (walk_fast.h).
struct runtime_fast {
    struct runtime_thread *thread;
    const struct modules *modules;
    // Where it begins: one of the two. And who wants to know what.
    const struct arch_capture *capture;
    const void *ucontext;
    struct qut_end *end;           // NULL: nobody
    struct walk_noted_walk *notes; // the same
    uintptr_t *pcs;
    size_t max, count; // frames given out
    // The frame the walk is at.
    uintptr_t sp, fp;
    uintptr_t ra;  // as it stands on the stack; the pc where the frame was interrupted
    uintptr_t key; // one more than the pc to look up
    enum runtime_remember remember;
    bool is_current;  // the list of modules is known to be up to date
    bool is_slow;     // none of them can be taken
    bool is_stubborn; // whether it pays is not asked
    bool is_given;    // the frame the walk is at was given out already: it is the last that is remembered
    const struct runtime_memo_frame *followed; // up to there all is as it was, and was given out; NULL: nothing is
    size_t remembered_count;                   // of the frames given out
    size_t mispredicted_count;                 // ... whose link was not the one that was tried
};

// What a walk has read of the code around an interrupted pc, from `start` on.
struct runtime_code_window {
    uintptr_t start;
    size_t size; // 0: nothing
    uint8_t bytes[RUNTIME_CODE_WINDOW_BYTES];
};

// In a sample of a program that does other work, each cache line and each page is waited for: what every walk reads
// lies together, the memo's outermost frames before it and the first links behind it.
struct runtime_thread {
    struct runtime_memo memo;
    // Walks of this thread that have begun and not ended: 2 where a signal handler walks while the thread walked.
    // Written by the thread itself only; read by the freeing side, for what walks may read.
    _Atomic uint32_t walking;
    _Atomic uint32_t walks; // outermost walks that have ended. Written as `walking`
    // The stack may reach from stack_high down to stack_limit. What lies from stack_low on was in use once, and can be
    // read; walks lower stack_low as they see the stack grow. At first it is an address in use at registration.
    uintptr_t stack_limit, stack_low, stack_high;
    enum runtime_begin begin;
    uint32_t same_epoch; // of the list by which the next walk may begin where the last one did; 0: it may not
    struct runtime_tier_counts counts;
    // They stand before the first link of a walk, and before the first behind what was remembered.
    struct runtime_link first_link, later_link;
    // Of the outermost walk, where it has to be in memory: there is little room on stacks.
    struct runtime_fast fast;
    // Walks that ended, by reason: of the thread itself, one writer.
    _Atomic uintptr_t ends[QUT_END_REASON_COUNT];
    // Pages of their own: many threads never use them.
    struct runtime_hashed_rules *hashed;
    struct runtime_seen_steps *seen;
    struct runtime_known_rules *rules;
    struct runtime_trail *trail;
    // The trace store's: which trace the nodes in `memo` belong to; 0: they are all 0. And where the stack stood in the
    // outermost append under way; 0: none is.
    uint32_t node_generation;
    uintptr_t append_sp;
    struct runtime_near_tables near;
    struct runtime_link_cache links;
    _Atomic uintptr_t nested_ends[QUT_END_REASON_COUNT]; // of the handlers that interrupted it
    _Alignas(uint64_t) unsigned char slow[512];          // struct backtrace
    struct runtime_code_window code_window;
    struct runtime_thread *next, *previous; // list of all threads, under the registry's lock
    // Of the grace period under way, under the registry's lock: whether a walk that began before it may still run, and
    // `walks` at its beginning.
    bool in_grace;
    uint32_t grace_walks;
    _Alignas(uint64_t) unsigned char jit[RUNTIME_JIT_BYTES + 1024]; // what walks expect (libqut/modules/jit_expected.c)
};

// What is done first when a registered thread ends, or is registered no more: in that thread. NULL: nothing.
extern _Atomic(void (*)(void)) modules_thread_end_hook_first;

// The calling thread; NULL where it is not registered. Signal-safe.
static inline struct runtime_thread *runtime_thread_self(void)
{
    return (struct runtime_thread *)os_thread_word(OS_WORD_THREAD);
}

static inline void runtime_thread_set_self(struct runtime_thread *thread)
{
    os_set_thread_word(OS_WORD_THREAD, (uintptr_t)thread);
}

#endif
