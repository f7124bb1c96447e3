// SPDX-License-Identifier: Apache-2.0
// Stands still deep in calls: of functions that are traced, or not, on the main stack, another thread's, and a
// coroutine's. usage: deep traced|plain
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/unit/agent/calls/tail.h"
#include "tests/unit/agent/calls/thunks.h"

static volatile int made;
static ucontext_t outside, inside;

__attribute__((noinline)) static void stand_still(void)
{
    static int ready; // of the two threads
    if (__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST) == 2) {
        puts("ready");
        fflush(stdout);
    }
    while (made >= 0)
        pause();
}

TRACED static void innermost(int n)
{
    volatile char room[200];
    room[0] = (char)n;
    stand_still();
    made += room[0];
}

__attribute__((noinline)) static void between(int n)
{
    innermost(n);
    made++;
}

TRACED static void recursive(int n)
{
    made += tail_a(n);
    if (n > 0)
        recursive(n - 1);
    else
        between(n);
    made++;
}

TRACED static void coroutine(void)
{
    recursive(2);
    made++;
}

TRACED static void *thread(void *unused)
{
    recursive(5);
    made++;
    return unused;
}

TRACED static void enters_coroutine(void)
{
    static char stack[1 << 16];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "traced") == 0) {
        bool traced = thunks_begin(1 << 16, 4) == 0 && THUNKS_TRACE(innermost, 1) && THUNKS_TRACE(recursive, 2) &&
                      THUNKS_TRACE(coroutine, 3) && THUNKS_TRACE(thread, 4) && THUNKS_TRACE(enters_coroutine, 5) &&
                      THUNKS_TRACE(tail_a, 6) && THUNKS_TRACE(tail_b, 7);
        if (!traced)
            return 2;
    }
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    enters_coroutine();
    return 1;
}
