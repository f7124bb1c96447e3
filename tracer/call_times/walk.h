// SPDX-License-Identifier: Apache-2.0
// From events to calls: which exit, or what else, ended which entry. All threads of a process are gone through in the
// order of time, since a coroutine may go on in another thread. Nothing is kept of calls that are over: what is made of
// them, a visitor does.
#ifndef TRACER_CALL_TIMES_WALK_H
#define TRACER_CALL_TIMES_WALK_H

#include "base/error.h"
#include "tracer/call_events/events.h"

enum call_times_how {
    CALL_TIMES_RETURNED, // its exit is there
    CALL_TIMES_TAIL,     // by a jump to another traced function, whose exit is its caller's return
    CALL_TIMES_UNWOUND,  // by an exception, longjmp, its thread's end: something further out went on. Its end is when
                         // that was seen
    CALL_TIMES_OPEN,     // not at all: it ran when the trace ended
    CALL_TIMES_LOST,     // it is not known how: events of its thread have been lost meanwhile
    CALL_TIMES_HOW_COUNT
};
const char *call_times_how_name(enum call_times_how how); // "returned"

struct call_times_call {
    uint64_t number; // of its entry among all of the process, in the order of time, from 0 on
    uint64_t begin_ns, end_ns;
    uint64_t callees_ns; // of this, in traced functions that it called
    uint64_t slot;
    uint64_t own;      // the visitor's
    uint32_t function; // index in the part's functions
    uint32_t thread;   // that entered it: index in the part's threads
    uint32_t depth;    // traced calls further out on its stack
    uint32_t stack;    // which one, in the end: calls of one lie in each other
    enum call_times_how how;
    uint32_t losses; // of its thread, when it was entered
    bool will_return;
};

// NULL: not asked for. `outer`: the traced call that it is called from, NULL: there is none. On the way in, end_ns, how
// and callees_ns are not known yet. Each call is entered once and left once; of one stack, what is further in is left
// first.
struct call_times_visitor {
    void (*enter)(void *context, struct call_times_call *call, const struct call_times_call *outer);
    void (*leave)(void *context, const struct call_times_call *call, const struct call_times_call *outer);
    void *context;
};

// enters = the sum of how; exits = returned + exits_alone.
struct call_times_account {
    uint64_t enters, exits;
    uint64_t how[CALL_TIMES_HOW_COUNT];
    uint64_t exits_alone; // whose entry is not there: it was lost, or is older than the trace
    uint64_t begin_ns, end_ns;
};

// 0; or -1, *error filled: no memory.
int call_times_walk(const struct call_events *calls, const struct call_times_visitor *visitor,
                    struct call_times_account *account, struct base_error *error);

#endif
