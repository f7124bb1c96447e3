// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_CALL_TIMES_INSIDE_H
#define TRACER_CALL_TIMES_INSIDE_H

#include "tracer/call_times/walk.h"

// ---- merged.c: the events of all threads, in the order of time

struct call_times_event {
    struct call_event event;
    uint32_t thread;
    uint64_t ns;  // never less than of the event before
    bool is_last; // of its thread
};

struct call_times_merged;
struct call_times_merged *call_times_merged_begin(const struct call_events *calls); // NULL: no memory
bool call_times_merged_next(struct call_times_merged *merged, struct call_times_event *event);
void call_times_merged_end(struct call_times_merged *merged);

// ---- slots.c: what is open at a slot

struct call_times_slots {
    struct call_times_slot {
        uint64_t slot; // | 1; 0: free
        uint64_t value;
    } * items;
    size_t mask; // their count less one; 0: none
    size_t count;
};
// Where its value is; NULL: it has none.
uint64_t *call_times_slots_find(const struct call_times_slots *slots, uint64_t slot);
bool call_times_slots_set(struct call_times_slots *slots, uint64_t slot, uint64_t value); // false: no memory
void call_times_slots_remove(struct call_times_slots *slots, uint64_t slot);
void call_times_slots_free(struct call_times_slots *slots);

// ---- stacks.c: the stacks of a process, and who is on which

enum { CALL_TIMES_NO_STACK = UINT32_MAX };

struct call_times_stack {
    struct {
        BASE_VECTOR(struct call_times_call);
    } open;          // further in, further behind: slots descend
    uint32_t number; // no other one has it, also of those that are gone
    uint64_t home;   // of an empty one, where its last call was
    uint32_t thread; // that is on it; CALL_EVENTS_NONE: nobody
    bool is_waiting;
};

struct call_times_stacks {
    const struct call_events *calls;
    const struct call_times_visitor *visitor;
    struct call_times_account *account;
    struct {
        BASE_VECTOR(struct call_times_stack *);
    } all;
    struct {
        BASE_VECTOR(uint32_t);
    } unused; // empty ones that nobody is on
    struct {
        BASE_VECTOR(uint32_t);
    } waiting;                     // with open calls, that nobody is on: by their innermost slot
    uint32_t *stack_of;            // by thread
    uint32_t *losses;              // by thread: how often events were lost till now
    struct call_times_slots slots; // open calls' stacks
    uint32_t numbers;              // of stacks, so far
    bool no_memory;
};

bool call_times_stacks_begin(struct call_times_stacks *stacks);
void call_times_stacks_enter(struct call_times_stacks *stacks, const struct call_times_event *event, uint64_t number,
                             bool will_return);
// Of a call that is open.
void call_times_stacks_exit(struct call_times_stacks *stacks, const struct call_times_event *event);
void call_times_stacks_thread_ends(struct call_times_stacks *stacks, uint32_t thread, uint64_t ns);
void call_times_stacks_end(struct call_times_stacks *stacks, uint64_t ns); // all that is open
void call_times_stacks_free(struct call_times_stacks *stacks);

#endif
