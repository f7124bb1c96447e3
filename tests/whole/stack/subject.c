// SPDX-License-Identifier: Apache-2.0
// A program to take stacks of. Usage: subject threads|same N|handler|spin|epoll. Says "ready" once every thread is
// where it stays; ends when standard input does, or after two minutes.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define KEPT __attribute__((noinline)) // and no tail call: something happens after each call

static atomic_int arrived;
static atomic_uint_fast64_t turns;
static volatile int sink;

static KEPT void wait_inner(void)
{
    atomic_fetch_add_explicit(&arrived, 1, memory_order_release);
    for (;;)
        pause();
}

static KEPT void wait_middle(void)
{
    wait_inner();
    sink = 1;
}

static KEPT void *wait_in_thread(void *argument)
{
    (void)argument;
    wait_middle();
    sink = 2;
    return NULL;
}

static KEPT void spin_inner(void)
{
    for (;;)
        atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
}

static KEPT void *spin_in_thread(void *argument)
{
    (void)argument;
    spin_inner();
    sink = 3;
    return NULL;
}

// Says by its name that it was interrupted.
static inline __attribute__((always_inline)) void poll_for_ever(int fd, int timeout_ms)
{
    struct epoll_event event;
    atomic_fetch_add_explicit(&arrived, 1, memory_order_release);
    for (;;)
        if (epoll_wait(fd, &event, 1, timeout_ms) < 0)
            pthread_setname_np(pthread_self(), "interrupted");
}

static KEPT void poll_inner(void)
{
    poll_for_ever(epoll_create1(0), -1);
}

static KEPT void *poll_in_thread(void *argument)
{
    (void)argument;
    poll_inner();
    sink = 9;
    return NULL;
}

// What it has on its stack is as large as a variable says: its caller is found by a frame pointer only, which
// epoll_wait has no reason to save.
static KEPT void poll_in_frame(int timeout_ms)
{
    volatile char *room = __builtin_alloca((size_t)atomic_load_explicit(&arrived, memory_order_relaxed) + 100);
    *room = 1;
    poll_for_ever(epoll_create1(0), timeout_ms);
    sink = *room;
}

static KEPT void *poll_framed(void *argument)
{
    poll_in_frame(-1);
    sink = 10;
    return argument;
}

static KEPT void *poll_timed(void *argument)
{
    enum { LONG_MS = 1000000 };
    poll_in_frame(LONG_MS);
    sink = 11;
    return argument;
}

static KEPT void handler_inner(void)
{
    wait_inner();
    sink = 4;
}

static KEPT void on_signal(int number)
{
    (void)number;
    handler_inner();
    sink = 5;
}

static KEPT void raise_inner(void)
{
    raise(SIGUSR1);
    sink = 6;
}

static KEPT void *handle_in_thread(void *argument)
{
    (void)argument;
    static char other_stack[65536];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise_inner();
    sink = 7;
    return NULL;
}

static void start(void *(*function)(void *), const char *name)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) != 0)
        exit(3);
    pthread_setname_np(thread, name);
}

static KEPT int wait_in_main(void)
{
    char bytes[64];
    puts("ready");
    fflush(stdout);
    ssize_t got;
    do
        got = read(STDIN_FILENO, bytes, sizeof bytes);
    while (got > 0);
    sink = 8;
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "threads";
    int count = argc > 2 ? atoi(argv[2]) : 3;
    alarm(120);
    if (strcmp(mode, "handler") == 0) {
        count = 1;
        start(handle_in_thread, "handling");
    } else if (strcmp(mode, "spin") == 0) {
        start(spin_in_thread, "spinning");
        count = 0;
    } else if (strcmp(mode, "epoll") == 0) {
        start(poll_in_thread, "polling");
        start(poll_framed, "framed");
        start(poll_timed, "timed");
        count = 3;
    } else {
        for (int i = 0; i < count; i++)
            start(wait_in_thread, strcmp(mode, "same") == 0 ? "worker" : "wait \"er\"");
    }
    while (atomic_load_explicit(&arrived, memory_order_acquire) < count)
        usleep(1000);
    usleep(20000); // into the system call
    return wait_in_main();
}
