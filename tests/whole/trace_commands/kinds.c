// SPDX-License-Identifier: Apache-2.0
// A program that computes, allocates, waits for a lock and for time, each in a function of its own.
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

__attribute__((noinline)) static void compute(void)
{
    for (unsigned i = 0; i < 3000000; i++)
        sum += i;
}

__attribute__((noinline)) static void allocate(void)
{
    for (size_t i = 0; i < 2000; i++) {
        char *volatile piece = malloc(1000 + i);
        if (piece)
            *piece = 1;
        free(piece);
    }
}

__attribute__((noinline)) static void hold(void)
{
    pthread_mutex_lock(&lock);
    usleep(2000);
    pthread_mutex_unlock(&lock);
}

static void *work(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (unsigned i = 0; i < ROUNDS; i++) {
        compute();
        allocate();
        hold();
        poll(NULL, 0, 3);
    }
    return NULL;
}

int main(void)
{
    static char *const names[THREADS] = {"worker-1", "worker-2", "other"};
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, names[i]) != 0)
            return 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
