// SPDX-License-Identifier: Apache-2.0
// What the stub (stub_x86_64.S) and what prepares for it share. The stub knows these places by number: they are held
// together below.
#ifndef AGENT_CALLS_INSIDE_H
#define AGENT_CALLS_INSIDE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls.h"

#pragma GCC visibility push(hidden)

// What a thread has of its ring. Memory that a child of fork finds zeroed: then it has no room, no ring and no table,
// and asks.
struct calls_own {
    uint64_t head_bytes;  // written so far. Taken by one instruction
    uint64_t limit_bytes; // up to there it may write
    uint64_t ring;        // address of its first event
    uint64_t mask_bytes;
    uint64_t counts; // address of its table
    struct qut_calls_ring *entry;
    uint64_t stuck_events; // 1 + the tail at which a wait for room was in vain; 0: none was
    uint64_t zero;
};
static_assert(sizeof(struct calls_own) == 64, "a line of its own");
static_assert(offsetof(struct calls_own, limit_bytes) == 8, "stub_x86_64.S");
static_assert(offsetof(struct calls_own, ring) == 16, "stub_x86_64.S");
static_assert(offsetof(struct calls_own, mask_bytes) == 24, "stub_x86_64.S");
static_assert(offsetof(struct calls_own, counts) == QUT_CALLS_OWN_COUNTS_AT, "stub_x86_64.S, thunks");

// Never NULL: at first one with no room.
extern _Thread_local struct calls_own *calls_own __attribute__((tls_model("initial-exec")));
extern uint8_t *calls_granules; // 2^QUT_CALLS_GRANULES_LOG2 of enum qut_calls_granule

// Of the whole process. `is_here` is zeroed in a child of fork as well.
struct calls_area {
    uint64_t is_here;
    uint64_t zero[7];
    struct calls_own own[];
};
extern struct calls_area *calls_area;         // NULL: calls_begin was not called
extern struct qut_calls_header *calls_header; // the memory that is shared
extern struct qut_calls_ring *calls_directory;

// Whether this very process is the one that calls_begin was called in.
static inline bool calls_are_ours(void)
{
    return calls_area && __atomic_load_n(&calls_area->is_here, __ATOMIC_RELAXED) != 0;
}

// Its calls ask for a ring again.
void calls_thread_is_new(void);

// 0, -EEXIST or -errno. By a system call only; signal-safe.
int calls_map_granule(uint64_t granule);

// ---- walkers_x86_64.c

// Tells the program's own walkers where true return addresses are; no longer, before the stub may go.
void calls_help_walkers(void);
void calls_leave_walkers(void);

// ---- stub_x86_64.S

extern const char calls_stub_begin[], calls_enter[], calls_exit[], calls_exit_end[], calls_count[], calls_stub_end[];

// A trap's pc, which is behind it, becomes the thunk; or the trap's own, where the byte is none any more. Within the
// stub, since a tracer lets whoever is there go on before it believes that nobody is on the way to a thunk.
void calls_trap_go(void *pc, uint64_t thunk);

// ---- called from the stub: general registers only, system calls only

// The shadow of `slot` was not known to be there. Whether it is: then the stub looks again. Else the call passes.
bool calls_prepare_stack(uint64_t slot);
// There is no room for an event. Whether there is now: then the stub looks again. Else the event is lost, and counted.
bool calls_prepare_room(bool is_exit);
// There is no table of counts. As above.
bool calls_prepare_counts(void);

#pragma GCC visibility pop

#endif
