// SPDX-License-Identifier: Apache-2.0
#include "agent/suits.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libqut/host/host.h"

#ifdef __GLIBC__
// musl's loader takes our file for what it needs, and ends the program over any function that musl does not have. So
// the two that are glibc's own are weak: dladdr1 (libqut/os/loader.c), and this one, which pthread_atfork is made of.
extern const char *gnu_get_libc_version(void) __attribute__((weak));
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *module)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"))) int pthread_atfork(void (*before)(void), void (*in_parent)(void),
                                                         void (*in_child)(void))
{
    return __register_atfork(before, in_parent, in_child, &__dso_handle);
}

static bool is_our_libc(void)
{
    return gnu_get_libc_version != NULL;
}
#else
static bool is_our_libc(void)
{
    return true;
}
#endif

// Chromium's zygote, also Electron's: it ends itself when /proc/self/task has a second thread. What it forks is not
// recorded either: it is about to enter a sandbox that would kill it for our system calls.
static bool wants_no_thread(int count, char *const arguments[])
{
    for (int i = 1; i < count; i++)
        if (arguments[i] && strcmp(arguments[i], "--type=zygote") == 0)
            return true;
    return false;
}

enum agent_left agent_fits(int argument_count, char *const arguments[])
{
    // musl gives constructors no arguments: in this order.
    return !is_our_libc()                               ? AGENT_LEFT_LIBC
           : wants_no_thread(argument_count, arguments) ? AGENT_LEFT_ONE_THREAD
                                                        : AGENT_LEFT_NOT;
}

static bool is_traced(void)
{
    static const char name[] = "\nTracerPid:\t";
    char text[1024]; // it is among the first lines
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *found = strstr(text, name);
    return found && found[strlen(name)] != '0';
}

// gdb stops at SIGSTKFLT, as at any signal that programs do not use; a profiler's it passes on. SIGTRAP, which is
// cheaper, says to an injector that a call of its own went wrong. A program that was not asked may handle any of them
// (ART does SIGTRAP and SIGSTKFLT): the first that is free.
int agent_signal_that_fits(enum agent_channel_begin how)
{
    if (how == AGENT_BEGAN_BY_INJECTION) {
        int number = os_tick_signal_choose(0);
        return number > 0 ? number : SIGSTKFLT; // which is refused then
    }
    struct sigaction action;
    bool is_free = sigaction(SIGPROF, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
    return is_free && is_traced() ? SIGPROF : 0;
}
