// SPDX-License-Identifier: Apache-2.0
// Two timers that interrupt the thread that started them, and each other: their handlers nest.
#ifndef TESTS_PROOF_STORE_TICKS_H
#define TESTS_PROOF_STORE_TICKS_H

#include <stdint.h>

enum { TICKS_COUNT = 2 };

struct ticks {
    int descriptors[TICKS_COUNT]; // of performance counters; -1: a timer is used instead
    void *timers[TICKS_COUNT];
};

// `on_tick` runs in handlers of all threads that have ticks; once in a process.
void ticks_handle(void (*on_tick)(void));

// For the calling thread. Periods are of its processor time where the kernel allows performance counters, else of time.
// 0: that one does not run. Returns how many run.
int ticks_start(struct ticks *ticks, uint64_t first_period_ns, uint64_t second_period_ns);
void ticks_stop(struct ticks *ticks);

#endif
