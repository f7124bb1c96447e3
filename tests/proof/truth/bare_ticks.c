// SPDX-License-Identifier: Apache-2.0
// bare_ticks HZ MS: what this machine delivers at all. One thread spins for MS ms of processor time; ticks are made by
// the calls that a recording makes them by, and a handler counts them, and does nothing else. A tick that came together
// with the one before it, since the machine's host ran something else, is none. Prints "TAKEN of DUE".
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "libqut/os/perf_event.h"
#include "libqut/os/task.h"
#include "libqut/os/timer.h"
#include "tests/proof/truth/shares.h"

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, ROUNDS = 100000 };

static _Atomic uint64_t taken;

static void count(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
}

int main(int argc, char **argv)
{
    static const char cookie;
    uint64_t hz = argc > 2 ? (uint64_t)atoi(argv[1]) : 0, limit_ns = argc > 2 ? (uint64_t)atoi(argv[2]) * NS_PER_MS : 0;
    if (!hz || !limit_ns)
        return 2;
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    uint64_t period_ns = NS_PER_S / hz, first_ns = os_cpu_ns_of(os_thread_id()), spent_ns;
    struct os_event event;
    int32_t timer;
    if (os_event_open(&event, OS_EVENT_CLOCK, os_thread_id(), period_ns, SIGPROF, -1, &cookie) == 0) {
        if (os_event_enable(&event) != 0)
            return 1;
    } else if (os_timer_create(&timer, OS_TIMER_CPU, os_thread_id(), SIGPROF, (void *)(uintptr_t)&cookie) == 0) {
        os_timer_set(timer, period_ns, period_ns);
    } else {
        return 1;
    }
    uint64_t value = 1;
    do
        value = shares_spin(ROUNDS, value);
    while ((spent_ns = os_cpu_ns_of(os_thread_id()) - first_ns) < limit_ns);
    printf("%llu of %llu\n", (unsigned long long)taken, (unsigned long long)(spent_ns / period_ns));
    return 0;
}
