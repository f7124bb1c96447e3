// SPDX-License-Identifier: Apache-2.0
// Events of the kernel's perf that send a signal to one thread of this process. All signal-safe: plain system calls.
#ifndef QUT_OS_PERF_EVENT_H
#define QUT_OS_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum os_event_kind {
    OS_EVENT_CLOCK,  // so much processor time went by, and the thread is in user mode
    OS_EVENT_FAULTS, // so many page faults, from user mode
};

// A mapping of an event keeps it alive: the descriptor is closed, where the system lets us map it.
struct os_event {
    void *pages; // NULL: none
    size_t page_bytes;
    bool counts;  // the mapping says how often the event fired
    int32_t fd;   // -1: closed
    int32_t mark; // of its signals (os_tick_mark): si_fd, the number that the descriptor had; or what SIGTRAP brings
};

// Of thread `tid` of this process; not yet enabled. The mark is another one than `other_mark`. With SIGTRAP the kernel
// sends the signal by itself, on the way back to user mode (Linux 5.13): a tick cost 18 us in a virtual machine, of
// which 16 are the timer's interrupt; by way of a descriptor's owner, which takes one more interrupt, 38. `cookie` is
// what such signals are known by. 0 or -errno: -EACCES (perf_event_paranoid, seccomp), -EMFILE, ...
int os_event_open(struct os_event *event, enum os_event_kind kind, uint32_t tid, uint64_t period, int signal_number,
                  int32_t other_mark, const void *cookie);
// Whether one can be had and enabled: 0 or -errno, as both say it. It is mapped nowhere, which takes the most of the
// time and is refused without harm.
int os_event_try(enum os_event_kind kind, uint32_t tid, int signal_number);
int os_event_enable(struct os_event *event); // 0 or -errno: filters deny it where they let the event be opened
// Once it is back the event sends nothing more; what it sent may be pending.
void os_event_close(struct os_event *event);
// How often it fired, or 0 where that is not known.
uint64_t os_event_fired(const struct os_event *event);
// How many events a second the kernel lets a processor have; 0: it does not tell.
uint64_t os_events_a_second(void);

#pragma GCC visibility pop

#endif
