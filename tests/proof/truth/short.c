// SPDX-License-Identifier: Apache-2.0
// short COUNT US: COUNT threads, one after the other, each of which computes for US microseconds of its processor time
// and ends. Ends with the processor time that all of them used, in ns.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;
static uint64_t wanted_ns, used_ns;

static uint64_t own_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static void compute_shortly(void)
{
    uint64_t value = sink;
    for (unsigned i = 0; i < 20000; i++)
        value = value * 6364136223846793005u + 1;
    sink = value;
}

static void *run(void *argument)
{
    while (own_ns() < wanted_ns)
        compute_shortly();
    used_ns += own_ns();
    return argument;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    wanted_ns = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000u : 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 2;
    }
    printf("%ju\n", (uintmax_t)used_ns);
    return 0;
}
