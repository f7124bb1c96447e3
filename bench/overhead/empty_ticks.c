// SPDX-License-Identifier: Apache-2.0
// What a system takes for ticks, whatever program asks for them: preloaded, each thread of a program is interrupted at
// 1 kHz by perf's clock, as libqut does it, and a handler does nothing. By itself, beside it, and beside a recording.
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned long tick_count;

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    tick_count = tick_count + 1;
}

static int real_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    typedef int function(int, const struct sigaction *, struct sigaction *);
    static function *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    return real(number, action, before);
}

// The program's own handler of that signal would take the ticks.
__attribute__((visibility("default"))) int sigaction(int number, const struct sigaction *action,
                                                     struct sigaction *before)
{
    return number == SIGTRAP ? 0 : real_sigaction(number, action, before);
}

static void begin_process(void)
{
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = 1000000,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .inherit = 1, // by threads that come later
        .inherit_thread = 1,
        .sigtrap = 1,
        .remove_on_exec = 1,
    };
    if (syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
        abort();
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (real_sigaction(SIGTRAP, &action, NULL) != 0 || pthread_atfork(NULL, NULL, begin_process) != 0)
        abort();
    begin_process();
}
