// SPDX-License-Identifier: Apache-2.0
// For machines where no function is entered by a trap.
#include <errno.h>

#include "agent/calls/calls.h"

int calls_traps_add(uint64_t begin, uint64_t end)
{
    (void)begin;
    (void)end;
    return -ENOSYS;
}

bool calls_traps_are_in(void)
{
    return false;
}

bool calls_traps_are_ours(void)
{
    return false;
}

bool calls_traps_take(const siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    return false;
}

void calls_traps_leave_child(void) {}

void calls_traps_stay_in_child(void) {}
