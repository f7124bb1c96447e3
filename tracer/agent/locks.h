// SPDX-License-Identifier: Apache-2.0
// Who holds a lock that others wait for, and whose release woke them: for every kind of lock, on any libc. A table in
// memory of its own, found by the lock's address; only locks that somebody waits for have a place in it.
//
// A waiter registers before it waits. A releaser that finds waiters stores a sample of itself (QUT_SAMPLE_UNLOCK or
// QUT_SAMPLE_WAKE, with a flow number) and writes {its tid, the flow} into the place before it releases; the one that
// gets the lock reads them while it holds it, when nobody else can write there.
#ifndef TRACER_AGENT_LOCKS_H
#define TRACER_AGENT_LOCKS_H

#include "tracer/agent/agent.h"

#pragma GCC visibility push(hidden)

struct lock_place; // NULL: there is no room for another lock. Counted: locks_untold
struct lock_wake {
    uint32_t waker_tid; // 0: not known
    uint32_t zero;
    uint64_t flow;
};

struct lock_place *lock_wait_begins(const void *lock);
void lock_wait_ends(struct lock_place *place);
// Called before the release; costs one load where nobody waits.
bool lock_has_waiters(const void *lock);
void lock_releases(const void *lock, uint32_t kind); // takes the sample, writes the wake
void lock_wake_of(const struct lock_place *place, struct lock_wake *wake);
// The own table of owners: for locks whose libc does not tell. tid 0: nobody.
void lock_owned_by(const void *lock, uint32_t tid);
uint32_t lock_owner(const void *lock);
uint64_t locks_untold(void);

#pragma GCC visibility pop

#endif
