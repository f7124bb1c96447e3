// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/store/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void (*handle)(void);

static void handler(int signal_number)
{
    (void)signal_number;
    int error = errno;
    handle();
    errno = error;
}

// Real-time signals would queue up; these are merged while they wait.
static const int signals[TICKS_COUNT] = {SIGUSR1, SIGUSR2};

void ticks_handle(void (*on_tick)(void))
{
    handle = on_tick;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER | SA_RESTART};
    for (int i = 0; i < TICKS_COUNT; i++)
        sigaction(signals[i], &action, NULL);
}

static int start_counter(uint64_t period_ns, int signal_number)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.sample_period = period_ns;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.wakeup_events = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -1;
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    if (fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, signal_number) == 0 &&
        fcntl(fd, F_SETOWN_EX, &owner) == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
        return fd;
    close(fd);
    return -1;
}

static void *start_timer(uint64_t period_ns, int signal_number)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return NULL;
    // Not of the thread's own time: where threads wait for a processor, or are emulated, handlers must come to an end.
    struct timespec every = {.tv_nsec = (long)period_ns * 20};
    struct itimerspec period = {.it_value = every, .it_interval = every};
    timer_settime(timer, 0, &period, NULL);
    return (void *)((uintptr_t)timer + 1); // the first timer's id may be 0
}

int ticks_start(struct ticks *ticks, uint64_t first_period_ns, uint64_t second_period_ns)
{
    uint64_t periods[TICKS_COUNT] = {first_period_ns, second_period_ns};
    int count = 0;
    for (int i = 0; i < TICKS_COUNT; i++) {
        ticks->descriptors[i] = -1;
        ticks->timers[i] = NULL;
        if (periods[i] == 0)
            continue;
        ticks->descriptors[i] = start_counter(periods[i], signals[i]);
        if (ticks->descriptors[i] < 0)
            ticks->timers[i] = start_timer(periods[i], signals[i]);
        count += ticks->descriptors[i] >= 0 || ticks->timers[i];
    }
    return count;
}

void ticks_stop(struct ticks *ticks)
{
    for (int i = 0; i < TICKS_COUNT; i++) {
        if (ticks->descriptors[i] >= 0)
            close(ticks->descriptors[i]);
        if (ticks->timers[i])
            timer_delete((timer_t)((uintptr_t)ticks->timers[i] - 1));
    }
}
