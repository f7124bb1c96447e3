// SPDX-License-Identifier: Apache-2.0
// A shared object that is preloaded into a program, and takes stacks in it: see run.
#ifndef QUT_BENCH_PROGRAMS_SAMPLER_H
#define QUT_BENCH_PROGRAMS_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum sampler_mode {
    SAMPLER_OFF = 0,
    SAMPLER_TIMER,  // every millisecond of each thread that is not asleep, from a signal handler
    SAMPLER_MALLOC, // every 100th call of malloc of each thread
};
extern enum sampler_mode sampler_mode; // set once, before the program's own code runs

// Learns what can be measured, and starts libqut; everything that is loaded now has its table when it returns.
bool walks_start(const char *cache_directory);

struct sampled_thread;
// For the calling thread; NULL: there is no memory. [not signal-safe]
struct sampled_thread *walks_thread_new(void);
void walks_thread_free(struct sampled_thread *thread);

// Takes the stack of the calling thread by the walker whose turn it is, and records what it cost. ucontext: NULL, or
// what the signal handler got. [signal-safe; not while it runs in this thread already]
void walks_take(struct sampled_thread *thread, const void *ucontext);

#endif
