// SPDX-License-Identifier: Apache-2.0
// Where the sampling thread runs, and what that does to who is sampled.
//
// Where no processor is free, it takes one away from somebody. If that is the program's partner (a client whose server
// is sampled), the program runs out of work while it is looked at, and is met waiting far too often: of a redis-server,
// with 24 % of its time in epoll_wait, 58 % of the samples were there. So it runs where the program runs, and takes its
// processor: what was going on then is what is met.
//
// A thread that has to wait for a processor looks as if it ran. One from which we took it has waited since just before
// the round began; one that was woken since some other moment, and then it had used no time there. How long before the
// round is learnt from threads that stood still outside of calls: these cannot have slept.
#ifndef TRACER_ATTACH_PLACE_H
#define TRACER_ATTACH_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct attach_place {
    cpu_set_t before; // what the thread may use
    bool has_before;
    int processor;           // that we keep to; -1: none
    uint64_t looked_ns;      // at the machine
    uint64_t idle_ns;        // of all processors, as of then
    bool is_full;            // no processor is always free
    double near_ns, wide_ns; // how long before a round its thread's wait began, and how much that differs
};

void attach_place_begin(struct attach_place *place);
void attach_place_end(struct attach_place *place);
// The thread that was sampled used this processor last; -1: not known.
void attach_place_follow(struct attach_place *place, int processor, uint64_t now_ns);

struct attach_turn {
    bool is_new;       // the thread began to run behind the look at it: it had no processor then
    bool is_in_call;   // it stood still in a call
    uint64_t since_ns; // with is_new: it had waited since then
    uint64_t round_ns; // when the round began
};
// Whether a thread that was stopped had a processor when the round began.
bool attach_place_had_processor(struct attach_place *place, const struct attach_turn *turn);

#endif
