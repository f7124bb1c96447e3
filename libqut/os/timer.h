// SPDX-License-Identifier: Apache-2.0
// Timers of the kernel's that send a signal to one thread of this process, and the clocks of its threads. All
// signal-safe: plain system calls, as libc lacks some of it.
#ifndef QUT_OS_TIMER_H
#define QUT_OS_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum os_timer_clock { OS_TIMER_REAL, OS_TIMER_CPU }; // CLOCK_MONOTONIC, processor time of the thread

// `cookie`: its signals' si_value. Not armed yet. 0 or -errno.
int os_timer_create(int32_t *timer, enum os_timer_clock clock, uint32_t tid, int signal_number, void *cookie);
// First after first_ns, then every period_ns; first_ns 0: never. Returns after how long it would have come; 0: it was
// not armed.
uint64_t os_timer_set(int32_t timer, uint64_t first_ns, uint64_t period_ns);
void os_timer_delete(int32_t timer);
// Whether timers of processor time interrupt no call: their signals are sent on the way back to user mode. Not
// signal-safe.
bool os_cpu_timers_wait(void);

// Processor time of a thread of this process.
struct os_task_times {
    uint64_t cpu_ns;          // exact
    uint64_t user_ns, all_ns; // as sampled by the kernel's tick: of all, what was in user mode
};
bool os_task_times(uint32_t tid, struct os_task_times *times);
uint64_t os_cpu_ns_of(uint32_t tid); // the first of these alone; 0: the thread has ended

#pragma GCC visibility pop

#endif
