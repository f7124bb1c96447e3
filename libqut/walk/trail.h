// SPDX-License-Identifier: Apache-2.0
// See trail.c and trail_record.c. All of it is signal-safe, for the outermost walk of the thread whose trail it is.
#ifndef QUT_WALK_TRAIL_H
#define QUT_WALK_TRAIL_H

#include "libqut/runtime/known_rules.h"
#include "libqut/runtime/trail.h"
#include "libqut/walk/seen_steps.h"

#pragma GCC visibility push(hidden)

// Before a walk: drops it if what is known of code has changed.
void walk_trail_begin(struct runtime_trail *trail, uint32_t modules_epoch, uint32_t made_generation);

// ---- following

// Whether what code's rules rest on is what it was.
typedef bool (*walk_proof_holds)(void *context, uintptr_t pc, unsigned proof, uint32_t number);

// The frame of the trail that the walk is at, and from which it would go the recorded way, with at most `room` frames;
// NULL: none.
const struct runtime_trail_state *walk_trail_find(const struct runtime_trail *trail, const struct runtime_walk *walk,
                                                  struct walk_direct direct, size_t room, walk_proof_holds holds,
                                                  void *context);

// From that frame to the end: the pcs of all further frames. Returns how many they are.
size_t walk_trail_follow(const struct runtime_trail *trail, const struct runtime_trail_state *state,
                         struct runtime_walk *walk, uintptr_t *pcs);

// ---- when to record

// A walk has come to the root: so many of its frames were left slowly, and so many were followed. Whether the next one
// is to be recorded.
bool walk_trail_judge(struct runtime_trail *trail, size_t slow_count, size_t followed_count);

// ---- recording: a walk by the slow way alone

void walk_trail_record(struct runtime_trail *trail);
// The walk has come to this frame;
void walk_trail_at(struct runtime_trail *trail, const struct runtime_walk *walk);
// ... what its step depends on: a word of the stack, code with such a proof, compiled code of a virtual machine,
void walk_trail_reads(struct runtime_trail *trail, uintptr_t address, uintptr_t value);
void walk_trail_rests_on(struct runtime_trail *trail, uintptr_t pc, unsigned proof, uint32_t number);
static inline void walk_trail_meets_machine(struct runtime_trail *trail)
{
    trail->step.machine_count++;
}
// ... or what cannot be compared;
static inline void walk_trail_spoil(struct runtime_trail *trail)
{
    trail->step.is_spoiled = true;
}
// ... its rule is found;
void walk_trail_classified(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t pc);
// ... it has led to the frame that the walk is at;
void walk_trail_left(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t lookup_pc, unsigned flags);
// ... or the walk has ended there.
void walk_trail_ended(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t lookup_pc,
                      unsigned flags);

#pragma GCC visibility pop

#endif
