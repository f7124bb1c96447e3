// SPDX-License-Identifier: Apache-2.0
// What handlers meet and our thread tells of: functions with numbers, whose names a trace is to have. What is met again
// by the same trace is told once.
#ifndef QUT_MODULES_MET_H
#define QUT_MODULES_MET_H

#include <stdatomic.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct modules_met {
    // Of the trace that it was met in last; of the one that it was told for last.
    _Atomic uint32_t mark;
    uint32_t told;
    // In the list of those that are to be told.
    _Atomic uint32_t is_listed;
    uint32_t next;
};

struct modules_met_list {
    _Atomic uint32_t first; // 0: none
    struct modules_met *(*item)(uint32_t number);
};

// That number was met for the trace with that mark. Signal-safe.
void modules_meet(struct modules_met_list *list, uint32_t number, uint32_t mark);
// Calls tell for each that was met for the trace with that mark, and not told yet; at most `most`. Under work.
void modules_tell_met(struct modules_met_list *list, uint32_t most, uint32_t mark,
                      void (*tell)(void *context, uint32_t number), void *context);
// In a child after fork, of numbers below `end`: the list may end in the middle, where a thread was about to add to it.
// What is met again is told again.
void modules_forget_met(struct modules_met_list *list, uint32_t end);

#pragma GCC visibility pop

#endif
