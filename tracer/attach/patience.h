// SPDX-License-Identifier: Apache-2.0
// Waits for a thread to stop, but not for ever: a blocking wait wakes at once when the thread stands still, also where
// other programs want the processors, and a timer's signal ends it.
#ifndef TRACER_ATTACH_PATIENCE_H
#define TRACER_ATTACH_PATIENCE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "libqut/os/scheduling.h"

struct attach_patience {
    timer_t timer;
    struct sigaction before;
    struct os_scheduling scheduling_before, usual;
    bool has_scheduling;
    bool may_hurry; // real-time priority is allowed
    int own_fd;     // this thread's schedstat; -1: none
    bool has_timer; // false: nothing but short naps
};

// For the calling thread, which also gets a higher priority, if it may: the thread that it has stopped waits for it.
void attach_patience_begin(struct attach_patience *patience);
void attach_patience_end(struct attach_patience *patience);
// Around one stop: no other program takes the processor from this thread, if it may ask for that. Between stops, where
// walks and tables take their time, others have their share.
void attach_patience_hurry(struct attach_patience *patience, bool is_stopping);
// How long this thread has been ready to run without a processor, in all its life. 0, always: not known.
uint64_t attach_patience_delay_ns(const struct attach_patience *patience);
// From `set` on, a system call that waits for longer than that returns EINTR. 0: no more.
void attach_patience_set(struct attach_patience *patience, uint64_t wait_ns);

#endif
