// SPDX-License-Identifier: Apache-2.0
// Ten brackets of known lengths, and calls outside of them, in two threads.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "bench/walk/marks.h"

static atomic_bool done;

// What another thread executes is not to be counted.
static void *work_beside(void *argument)
{
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        ;
    return argument;
}

static void loop(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        __asm__ volatile("" ::: "memory");
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_beside, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < 10; i++) {
        bench_count_on();
        loop(i * 100);
        bench_count_off();
        loop(12345);
    }
    atomic_store_explicit(&done, 1, memory_order_relaxed);
    return pthread_join(thread, NULL);
}
