// SPDX-License-Identifier: Apache-2.0
#include "tracer/attach/patience.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libqut/os/process.h"

enum { NICE = -10, AGAIN_NS = 1000000, SLICE_NS = 100000, LINE_BYTES = 128 };

// glibc has the first of these names since 2.38 only.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void do_nothing(int number)
{
    (void)number;
}

// A thread that wakes waits for the one that runs on its processor until that one's slice is over (Linux 6.6). A thread
// that works for less than a slice would then never be met at work on that processor. One that asks for a short slice
// does not wait (6.12).
static void ask_for_short_slices(struct attach_patience *patience)
{
    struct os_scheduling *usual = &patience->usual;
    *usual = (struct os_scheduling){.nice = NICE, .runtime_ns = SLICE_NS};
    if (!os_scheduling_set(usual)) {
        usual->nice = 0; // that may not be had
        os_scheduling_set(usual);
    }
}

void attach_patience_hurry(struct attach_patience *patience, bool is_stopping)
{
    if (!patience->may_hurry)
        return;
    if (is_stopping)
        patience->may_hurry = os_scheduling_go_first();
    else
        os_scheduling_set(&patience->usual);
}

uint64_t attach_patience_delay_ns(const struct attach_patience *patience)
{
    char text[LINE_BYTES], *at = text;
    if (patience->own_fd < 0 || !os_read_line(patience->own_fd, text, sizeof text))
        return 0;
    strtoull(at, &at, 10); // time on a processor
    return strtoull(at, NULL, 10);
}

static int signal_number(void)
{
    return SIGRTMAX - 3;
}

void attach_patience_begin(struct attach_patience *patience)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = do_nothing}; // no SA_RESTART
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number()};
    sigset_t set;
    memset(patience, 0, sizeof *patience);
    patience->has_scheduling = os_scheduling_get(&patience->scheduling_before);
    ask_for_short_slices(patience);
    patience->may_hurry = patience->has_scheduling && os_scheduling_go_first();
    attach_patience_hurry(patience, false);
    patience->own_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    event.sigev_notify_thread_id = tid;
    sigemptyset(&set);
    sigaddset(&set, signal_number());
    if (sigaction(signal_number(), &action, &patience->before) != 0)
        return;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    patience->has_timer = timer_create(CLOCK_MONOTONIC, &event, &patience->timer) == 0;
    if (!patience->has_timer)
        sigaction(signal_number(), &patience->before, NULL);
}

void attach_patience_end(struct attach_patience *patience)
{
    if (patience->has_scheduling)
        os_scheduling_set(&patience->scheduling_before);
    if (patience->own_fd >= 0)
        close(patience->own_fd);
    if (!patience->has_timer)
        return;
    timer_delete(patience->timer);
    sigaction(signal_number(), &patience->before, NULL);
    patience->has_timer = false;
}

void attach_patience_set(struct attach_patience *patience, uint64_t wait_ns)
{
    // It comes again: the first could come before the wait begins.
    const struct itimerspec time = {.it_value = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)},
                                    .it_interval = {0, wait_ns ? AGAIN_NS : 0}};
    timer_settime(patience->timer, 0, &time, NULL);
}
