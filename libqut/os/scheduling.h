// SPDX-License-Identifier: Apache-2.0
// Which thread runs first. Of the calling thread alone; plain system calls.
#ifndef QUT_OS_SCHEDULING_H
#define QUT_OS_SCHEDULING_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// As of sched_setattr(2); glibc has it since 2.41 only.
struct os_scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

bool os_scheduling_get(struct os_scheduling *scheduling);
bool os_scheduling_set(const struct os_scheduling *scheduling); // .size is filled in
// Real-time priority: it runs as soon as it can, whatever else wants the processor. False: not allowed.
bool os_scheduling_go_first(void);

#pragma GCC visibility pop

#endif
