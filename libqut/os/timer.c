// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/timer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "libqut/os/os.h"
#include "libqut/os/usage.h"

// What the system calls take, whatever the width of libc's times.
struct kernel_time {
    long seconds, nanoseconds;
};
struct kernel_timer {
    struct kernel_time interval, value;
};
struct kernel_event { // struct sigevent
    void *value;
    int signal_number, notify, tid;
    char zero[64 - sizeof(void *) - 3 * sizeof(int)];
};
enum { NOTIFY_THREAD = 4, NS_PER_S = 1000000000 };

// Clocks of threads: <linux/posix-timers.h>. Those of processor time are scaled, those of user mode are ticks.
enum task_clock { CLOCK_OF_ALL = 0, CLOCK_OF_USER = 1, CLOCK_OF_CPU = 2, CLOCK_OF_THREAD = 4 };

static int clock_of(uint32_t tid, enum task_clock which)
{
    return (int)(~tid << 3 | CLOCK_OF_THREAD | which);
}

int os_timer_create(int32_t *timer, enum os_timer_clock clock, uint32_t tid, int signal_number, void *cookie)
{
    int saved_errno = errno, id = -1;
    struct kernel_event event = {
        .value = cookie, .signal_number = signal_number, .notify = NOTIFY_THREAD, .tid = (int)tid};
    int of = clock == OS_TIMER_REAL ? CLOCK_MONOTONIC : clock_of(tid, CLOCK_OF_CPU);
    int result = syscall(SYS_timer_create, of, &event, &id) == 0 ? 0 : os_failed(SYS_timer_create);
    *timer = result == 0 ? id : -1;
    errno = saved_errno;
    return result;
}

static struct kernel_time time_of(uint64_t ns)
{
    return (struct kernel_time){(long)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

uint64_t os_timer_set(int32_t timer, uint64_t first_ns, uint64_t period_ns)
{
    int saved_errno = errno;
    struct kernel_timer now = {time_of(period_ns), time_of(first_ns)}, before = {{0, 0}, {0, 0}};
    syscall(SYS_timer_settime, timer, 0, &now, &before);
    errno = saved_errno;
    return (uint64_t)before.value.seconds * NS_PER_S + (uint64_t)before.value.nanoseconds;
}

void os_timer_delete(int32_t timer)
{
    int saved_errno = errno;
    if (timer >= 0)
        syscall(SYS_timer_delete, timer);
    errno = saved_errno;
}

bool os_cpu_timers_wait(void)
{
    unsigned major = arch_native_arch.cpu_timers_wait_from.major, minor = arch_native_arch.cpu_timers_wait_from.minor;
    return major && os_kernel_is_from(major, minor);
}

static bool read_clock(int clock, uint64_t *ns)
{
    struct kernel_time now = {0, 0};
    bool is_read = syscall(SYS_clock_gettime, clock, &now) == 0;
    *ns = (uint64_t)now.seconds * NS_PER_S + (uint64_t)now.nanoseconds;
    return is_read;
}

bool os_task_times(uint32_t tid, struct os_task_times *times)
{
    int saved_errno = errno;
    bool is_read = read_clock(clock_of(tid, CLOCK_OF_CPU), &times->cpu_ns);
    is_read = is_read && read_clock(clock_of(tid, CLOCK_OF_USER), &times->user_ns);
    is_read = is_read && read_clock(clock_of(tid, CLOCK_OF_ALL), &times->all_ns);
    errno = saved_errno;
    return is_read;
}

uint64_t os_cpu_ns_of(uint32_t tid)
{
    int saved_errno = errno;
    uint64_t cpu_ns;
    read_clock(clock_of(tid, CLOCK_OF_CPU), &cpu_ns);
    errno = saved_errno;
    return cpu_ns;
}
