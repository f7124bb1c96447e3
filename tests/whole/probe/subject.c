// SPDX-License-Identifier: Apache-2.0
// Calls a function from several threads and keeps its own account of it, which a probe has to come to as well.
//
//     probe_subject THREADS CALLS CHILDREN     prints "calls N sum OF-ARGUMENTS retvals SUM", then ends
//     probe_subject wait                       prints "ready"; calls for ever; ends with its standard input
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

long probe_work(long number, const char *text, const void *nowhere);
long probe_deep(long depth);

__attribute__((noinline)) long probe_work(long number, const char *text, const void *nowhere)
{
    __asm__ volatile("" : "+r"(number) : "r"(text), "r"(nowhere) : "memory");
    return number * 3 + (text ? 1 : 2);
}

__attribute__((noinline)) long probe_deep(long depth)
{
    __asm__ volatile("" : "+r"(depth) : : "memory");
    return depth ? probe_deep(depth - 1) + 1 : probe_work(1, "deep", NULL);
}

static long calls, sum_of_retvals, in_handler;

static void work(long count)
{
    long retvals = 0;
    for (long i = 0; i < count; i++)
        retvals += probe_work(i, i & 1 ? "odd" : "even", (const void *)16);
    __atomic_fetch_add(&sum_of_retvals, retvals, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls, count, __ATOMIC_RELAXED);
}

static void *run(void *count)
{
    work((long)(intptr_t)count);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
    const long retval = probe_work(5, "handler", NULL);
    __atomic_fetch_add(&sum_of_retvals, retval, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    in_handler++;
}

static int wait_for_end(void)
{
    char end;
    pthread_t thread;
    puts("ready");
    fflush(stdout);
    if (pthread_create(&thread, NULL, run, (void *)(intptr_t)INT64_MAX) != 0)
        return 1;
    return read(STDIN_FILENO, &end, 1) < 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "wait") == 0)
        return wait_for_end();
    if (argc != 4)
        return 2;
    const long threads = atol(argv[1]), count = atol(argv[2]), children = atol(argv[3]);
    pthread_t ids[64];
    for (long i = 0; i < children; i++) {
        const pid_t child = fork();
        if (child == 0) {
            work(count);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    signal(SIGALRM, on_signal);
    for (long i = 0; i < threads && i < 64; i++)
        if (pthread_create(&ids[i], NULL, run, (void *)(intptr_t)count) != 0)
            return 1;
    for (unsigned i = 0; i < 20; i++)
        kill(getpid(), SIGALRM);
    for (long i = 0; i < threads && i < 64; i++)
        pthread_join(ids[i], NULL);
    printf("calls %ld retvals %ld handler %ld deep %ld\n", calls, sum_of_retvals, in_handler, probe_deep(10));
    return 7;
}
