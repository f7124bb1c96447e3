// SPDX-License-Identifier: Apache-2.0
// Calls a function from several others, in threads and in signal handlers on a stack of their own, and keeps its own
// account of who called it how often. What the functions compute in vector registers is in the account, too.
//
//     probe_stacks_subject THREADS CALLS       prints "one N two N handler N deep N sum S"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

double probe_target(double a, double b, long n);
double probe_one(long n);
double probe_two(long n);
double probe_deep(long depth);

APART double probe_target(double a, double b, long n)
{
    __asm__ volatile("" : "+x"(a), "+x"(b), "+r"(n) : : "memory");
    return a * 2 + b + (double)n;
}

// Not at their ends: those would be tail calls. Registers that calls keep are in use.
APART double probe_one(long n)
{
    const double got = probe_target((double)n, 0.5, n);
    __asm__ volatile("" : : : "memory");
    return got + 1;
}

APART double probe_two(long n)
{
    double sum = 0;
    for (long i = 0; i < 2; i++)
        sum += probe_target((double)i, 0.25, n);
    __asm__ volatile("" : : : "memory");
    return sum;
}

APART double probe_deep(long depth)
{
    const double got = depth ? probe_deep(depth - 1) : probe_target(1, 2, 3);
    __asm__ volatile("" : : : "memory");
    return got + 1;
}

static long ones, twos, handled;
static double sums;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *count)
{
    double sum = 0;
    for (long i = 0; i < (long)(intptr_t)count; i++)
        sum += probe_one(i) + probe_two(i);
    pthread_mutex_lock(&lock);
    ones += (long)(intptr_t)count;
    twos += 2 * (long)(intptr_t)count;
    sums += sum;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
    if (probe_target(1, 1, 1) == 4)
        handled++;
}

int main(int argc, char **argv)
{
    static char own_stack[1 << 16];
    const stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    pthread_t ids[16];
    if (argc != 3 || sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 2;
    const long threads = atol(argv[1]) < 16 ? atol(argv[1]) : 16, count = atol(argv[2]);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, run, (void *)(intptr_t)count) != 0)
            return 1;
    for (unsigned i = 0; i < 10; i++)
        raise(SIGUSR1);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("one %ld two %ld handler %ld deep %.0f sum %.2f\n", ones, twos, handled, probe_deep(200), sums);
    return 7;
}
