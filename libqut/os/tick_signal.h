// SPDX-License-Identifier: Apache-2.0
// The signal that ticks are.
#ifndef QUT_OS_TICK_SIGNAL_H
#define QUT_OS_TICK_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef void os_tick_fn(int number, siginfo_t *info, void *ucontext);

// `wanted`, or with 0 the first of those that do, if it has no handler. Its number; -EINVAL: it cannot be used; -EBUSY:
// it is in use. Not signal-safe.
int os_tick_signal_choose(int wanted);
bool os_tick_signal_is_free(int number);
// 0 or -errno. The handler runs with all signals blocked, on the thread's alternate stack if it has one; calls are
// restarted as far as the kernel does it. Not signal-safe.
int os_tick_signal_take(int number, os_tick_fn *handler, struct sigaction *before);
// None is pending any more, in any thread. With `before` NULL it stays ignored: one may still come. Not signal-safe.
void os_tick_signal_give_back(int number, const struct sigaction *before);
// What the signal would have done without us: is for the handler. Signal-safe.
void os_tick_signal_as_before(int number, const struct sigaction *before);

// In the handler of `number`: whether another signal waits, to be delivered when it returns, after which calls end with
// EINTR. Signal-safe.
bool os_waiting_signal_ends_calls(int number, const void *ucontext);
// Whether one other than `number` waits that has a handler, and would be delivered with that mask. Signal-safe.
bool os_signal_waits(int number, const sigset_t *mask);

// What a signal is. Signal-safe.
enum os_tick_source { OS_TICK_STRAY, OS_TICK_EVENT, OS_TICK_TIMER };
enum os_tick_source os_tick_source(const siginfo_t *info, const void *cookie);
// Of an EVENT: which one sent it.
int32_t os_tick_mark(const siginfo_t *info);
// What SIGTRAP of an event brings: another one for each `cookie`, and for its second kind of events.
int32_t os_trap_mark(const void *cookie, bool is_second);

// Whether an event's SIGTRAP that is blocked waits for its end. Before Linux 5.18 it ends the process instead.
bool os_traps_wait(void);

#pragma GCC visibility pop

#endif
