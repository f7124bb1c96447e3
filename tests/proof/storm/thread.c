// SPDX-License-Identifier: Apache-2.0
// What every walked thread has: two timers of its own, an alternate stack, and a root function.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qut/local.h>

#include "tests/proof/storm/storm.h"

_Thread_local __attribute__((tls_model("initial-exec"))) struct storm_thread *storm_self;
_Atomic uint64_t storm_threads_made;

static int start_timer(timer_t *timer, int signal_number, long after_ns)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, timer) != 0)
        return -1;
    storm_set_timer(*timer, after_ns);
    return 0;
}

void storm_set_timer(timer_t timer, long after_ns)
{
    struct itimerspec once = {.it_value.tv_nsec = after_ns};
    timer_settime(timer, 0, &once, NULL);
}

static void block_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(how, &set, NULL);
}

int storm_thread_begin(struct storm_thread *thread)
{
    block_signals(SIG_BLOCK);
    thread->alternate = mmap(NULL, STORM_ALTERNATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    storm_self = thread;
    atomic_fetch_add_explicit(&storm_threads_made, 1, memory_order_relaxed);
    if (thread->alternate == MAP_FAILED || start_timer(&thread->tick_timer, SIGPROF, STORM_TICK_NS) != 0 ||
        start_timer(&thread->nested_timer, SIGUSR2, STORM_NESTED_NS) != 0)
        return -1;
    block_signals(SIG_UNBLOCK);
    return 0;
}

void storm_thread_end(struct storm_thread *thread)
{
    block_signals(SIG_BLOCK);
    timer_delete(thread->tick_timer);
    timer_delete(thread->nested_timer);
    // What is still pending is never delivered: the thread ends with its signals blocked.
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
    munmap(thread->alternate, STORM_ALTERNATE_BYTES);
    storm_self = NULL;
}

// ---- threads that come and go

STORM_ROOT static void *short_life(void *argument)
{
    struct storm_thread thread = {0};
    bool registers = argument != NULL;
    thread.activity = storm_self ? 0 : storm_activity_count - 1;
    if (registers)
        qut_thread_register();
    if (storm_thread_begin(&thread) != 0)
        abort();
    storm_spin(200);
    storm_walk_here();
    if (registers && (uintptr_t)argument % 2)
        qut_thread_unregister(); // else it is undone when the thread ends
    storm_spin(50);
    storm_thread_end(&thread);
    return NULL;
}

void storm_churn(unsigned round)
{
    pthread_t threads[3];
    unsigned made = 0;
    for (unsigned i = 0; i < 3; i++)
        made += pthread_create(&threads[made], NULL, short_life, (void *)(uintptr_t)(round * 3 + i)) == 0;
    storm_spin(50);
    while (made)
        pthread_join(threads[--made], NULL);
}

void storm_registration(unsigned round)
{
    for (unsigned i = 0; i < 20; i++) {
        qut_thread_unregister();
        storm_spin(5 + round % 7);
        storm_walk_here();
        qut_thread_register();
        storm_spin(5);
    }
}

void storm_alternate_stack(unsigned round)
{
    (void)round;
    for (unsigned i = 0; i < 20; i++) {
        stack_t stack = {.ss_sp = storm_self->alternate, .ss_size = STORM_ALTERNATE_BYTES};
        sigaltstack(&stack, NULL);
        storm_spin(20);
        stack = (stack_t){.ss_flags = SS_DISABLE};
        if (i % 4)
            sigaltstack(&stack, NULL);
        storm_spin(3);
    }
}
