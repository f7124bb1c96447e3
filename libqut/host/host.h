// SPDX-License-Identifier: Apache-2.0
// What an agent takes of libqut besides its API: a library of ours that runs inside a program of somebody else's, keeps
// out of that program's way, and is built together with libqut. Not installed: nothing here is promised to others.
//
// From the headers below it takes threads of its own, the ids and signal masks of threads, and the signal of ticks.
#ifndef QUT_HOST_HOST_H
#define QUT_HOST_HOST_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libqut/os/os.h"
#include "libqut/os/task.h"
#include "libqut/os/tick_signal.h"

#pragma GCC visibility push(hidden)

// libqut's thread ends for a while, and nothing begins another: for what the kernel allows only to processes with a
// single thread. Modules and tables stay.
void modules_registry_pause_thread(void);
void modules_registry_resume_thread(void);

// What libqut's thread calls besides, with nothing locked; returns in how many ms again, -1: never. NULL: nothing.
typedef int (*host_registry_call)(void);
extern _Atomic(host_registry_call) modules_registry_now_and_then;

// Whether a signal with the number of ticks was sent by what makes threads tick. Signal-safe.
bool sampling_is_tick(const siginfo_t *info);

// From now on the signal of ticks is SIGTRAP, whatever makes threads tick, and stays libqut's when sampling stops: an
// agent has handlers of its own for it. Before qut_sampling_start.
void sampling_keep_trap(void);

// Of each thread's ticks one of 2^halvings is stored from now on, whose sample stands for the processor time of the
// others as well; those are taken, and nothing is stored. 0: all are.
extern _Atomic uint32_t sampling_halvings;

// In a child after fork: the calling thread has ticks again, also where no trace is open yet. 0 or -errno. Signal-safe.
int sampling_ticks_after_fork(void);

// Called in the handler of a tick, before it stores; false: it stores nothing, and is lost. NULL: nothing. Signal-safe.
typedef bool (*host_tick_call)(void);
extern _Atomic(host_tick_call) sampling_before_sample;

// As qut_trace_open, but this process waits with its trace: none is open, and no file made, until feed_follow_now.
struct qut_trace_options;
int feed_open_later(const struct qut_trace_options *options);
// Children after fork from now on wait with their trace (QUT_TRACE_FOLLOW_FORK), likewise.
void feed_follow_later(bool later);
bool feed_is_waiting(void); // whether this process does. Signal-safe
// Opens the trace, which is said to have begun when the wait did. 0 or -errno; -EAGAIN: not at this moment. In a
// process of one thread it may be called in a handler, while no thread of libqut's is there
// (modules_registry_pause_thread).
int feed_follow_now(void);

// When a collector looked last at the trace (CLOCK_MONOTONIC). 0: none has, or there is no trace. UINT64_MAX: it has
// let go. Blocks.
uint64_t feed_collector_ns(void);

// A process is about to end without destructors: what it and the calling thread are called by now. Signal-safe.
void feed_look_at_names(void);

// Samples with functions of an interpreter (libqut/python); and those that lack some, or have them where they need not
// belong. Signal-safe.
struct python_sums {
    uint64_t merged, uncertain;
};
struct python_sums python_sums(void);

// Before the library is unloaded: nothing is stored any more, or ever will be. What stays for the process's life goes
// as well.
void feed_forget(void);

#pragma GCC visibility pop

#endif
