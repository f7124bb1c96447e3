// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

bool os_scheduling_get(struct os_scheduling *scheduling)
{
    return syscall(SYS_sched_getattr, 0, scheduling, sizeof *scheduling, 0) == 0;
}

bool os_scheduling_set(const struct os_scheduling *scheduling)
{
    struct os_scheduling sized = *scheduling;
    sized.size = sizeof sized;
    return syscall(SYS_sched_setattr, 0, &sized, 0) == 0;
}

bool os_scheduling_go_first(void)
{
    const struct os_scheduling first = {.policy = SCHED_FIFO, .priority = 1};
    return os_scheduling_set(&first);
}
