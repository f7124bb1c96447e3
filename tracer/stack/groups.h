// SPDX-License-Identifier: Apache-2.0
// Threads that are at the same place by the same way.
#ifndef TRACER_STACK_GROUPS_H
#define TRACER_STACK_GROUPS_H

#include "tracer/stack/take_stacks.h"

struct stack_groups {
    size_t *next;  // of a thread: the next one of its group; SIZE_MAX: it is the last
    size_t *first; // of a group: its first thread
    size_t *last;
    size_t *size;
    size_t count;
};

// Groups in the order of their first threads. merge: by stack; else each thread is a group. Returns 0, or -1 without
// memory.
int stack_groups_make(struct stack_groups *groups, const struct stack_take *take, bool merge);
void stack_groups_free(struct stack_groups *groups);

#endif
