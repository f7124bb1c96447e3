// SPDX-License-Identifier: Apache-2.0
// Which thread holds a lock that others wait for, and whose release woke them: for every kind of lock, on any libc. A
// table in memory of its own, found by the lock's address; only locks that are waited for have a place in it.
//
// A waiter registers before it waits. A releaser that finds waiters writes {its tid, a number} into the place, takes a
// sample of itself (QUT_SAMPLE_UNLOCK or QUT_SAMPLE_WAKE, with that number as its flow), and releases then; the one
// that gets through reads them.
//
// What the waiter says of its waker is never a guess. Of a lock that one thread holds alone, the last release before it
// got it is what let it in: no other thread could write meanwhile. Of what several may release (conditions, semaphores,
// read locks), the waker is told where there was one release since it began to wait, or all were by the same thread
// (then without a flow); else it is not told. Releases that we do not see at all (by other processes: such locks have
// no places; by raw system calls) leave the waker unknown, unless one that we saw came between.
#ifndef AGENT_LOCKS_H
#define AGENT_LOCKS_H

#include "agent/inside.h"

#pragma GCC visibility push(hidden)

enum { LOCK_BUCKETS = 1024 };
extern uint32_t agent_lock_waiting[LOCK_BUCKETS]; // of all locks whose address falls there

struct lock_wait {
    struct lock_place *place; // NULL: the table has no room; counted: locks_untold
    uint64_t before;          // the place's word when the wait began
    const void *lock;
};

struct lock_wake {
    uint32_t waker_tid; // 0: not known
    uint32_t zero;
    uint64_t flow; // 0: the waker has no sample of it
};

enum lock_release {
    LOCK_RELEASED_SHARED, // others may release it at the same time
    LOCK_RELEASED_ALONE,  // the calling thread alone holds it
};

static inline uint32_t agent_lock_bucket(const void *lock)
{
    uint32_t folded = (uint32_t)((uintptr_t)lock >> 3) ^ (uint32_t)((uint64_t)(uintptr_t)lock >> 32);
    return folded * 0x9E3779B1u >> 22;
}

// Called before the release; costs one load where no thread waits.
static inline bool agent_lock_has_waiters(const void *lock)
{
    return __atomic_load_n(&agent_lock_waiting[agent_lock_bucket(lock)], __ATOMIC_SEQ_CST) != 0;
}

// Of one lock at a time in each thread.
void agent_lock_wait_begins(struct lock_wait *wait, const void *lock);
// This wait's beginning is a sample: its end should have one, too.
void agent_lock_wait_is_stored(const struct lock_wait *wait);
void agent_lock_wait_ends(struct lock_wait *wait);
// The calling thread left a hook for good while it waited.
void agent_lock_wait_was_left(void);
// Writes the wake, and takes the sample where one is worth it. Called by hooks directly. Keeps errno.
void agent_lock_releases(const void *lock, uint32_t kind, enum lock_release release);
// The same of a release that cannot be told of: from within another hook.
void agent_lock_releases_untold(const void *lock);
void agent_lock_wake_of(const struct lock_wait *wait, struct lock_wake *wake);

// The own table of owners: for locks whose libc does not tell. tid 0: none. May forget, but never names another thread.
void agent_lock_owned_by(const void *lock, uint32_t tid);
uint32_t agent_lock_owner(const void *lock);

uint64_t locks_untold(void);
// In the child: no thread waits.
void agent_locks_after_fork(void);

#pragma GCC visibility pop

#endif
