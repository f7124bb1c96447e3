// SPDX-License-Identifier: Apache-2.0
// shares FILE THREADS MS: threads that spend known shares of their processor time in known functions, for MS ms of it
// each. All parts turn the same loop, so turns are time. How many there were in each is in FILE all the time (words of
// 8 bytes, one for each part, then their sum; then how many steps were done), so that a reader that looks twice knows
// what lies between. No clock around each part: reading a thread's own makes the kernel think of others, so that a
// thread that is preempted would be so there, more often than by chance.
// Ends with "done CHECKSUM", which is always the same.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/proof/truth/shares.h"

enum { PARTS = 5, THREADS_MAX = 8, DEPTH = 100, WORDS = PARTS + 2, STEPS_BETWEEN = 32, NS_PER_MS = 1000000 };

static _Atomic uint64_t *truth;
static uint64_t limit_ns;

__attribute__((noinline)) static uint64_t part_alpha(uint64_t rounds)
{
    return shares_spin(rounds, 1) + 1;
}
__attribute__((noinline)) static uint64_t part_beta(uint64_t rounds)
{
    return shares_spin(rounds, 2) + 1;
}
__attribute__((noinline)) static uint64_t part_gamma(uint64_t rounds)
{
    return shares_spin(rounds, 3) + 1;
}
// Deep, and working at its bottom.
__attribute__((noinline)) static uint64_t part_deep(uint64_t rounds, unsigned depth)
{
    uint64_t value = depth ? part_deep(rounds, depth - 1) : shares_spin(rounds, 4);
    __asm__ volatile("" : "+r"(value)); // no tail call
    return value + 1;
}

static uint64_t base_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// 40, 25, 15, 12 and 8 % of the steps, in an order by chance; each step is 0.5 to 3.5 times as long as the shortest.
static uint64_t step(uint32_t *seed, unsigned *part, uint64_t *rounds)
{
    static const unsigned char edges[PARTS] = {40, 65, 80, 92, 100};
    *seed = *seed * 1664525u + 1013904223u;
    unsigned percent = (*seed >> 16) % 100;
    *rounds = 250000 + (*seed >> 8) % 1500000;
    for (*part = 0; percent >= edges[*part];)
        ++*part;
    switch (*part) {
    case 0: return part_alpha(*rounds);
    case 1: return part_beta(*rounds);
    case 2: return part_gamma(*rounds);
    case 3: return part_deep(*rounds, DEPTH);
    default: return library_part(*rounds);
    }
}

static void *work(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    for (uint64_t first = base_clock_ns(); base_clock_ns() - first < limit_ns;)
        for (unsigned i = 0; i < STEPS_BETWEEN; i++) {
            unsigned part;
            uint64_t rounds, value = step(&seed, &part, &rounds);
            __asm__ volatile("" : : "r"(value));
            atomic_fetch_add_explicit(&truth[part], rounds, memory_order_relaxed);
            atomic_fetch_add_explicit(&truth[PARTS], rounds, memory_order_relaxed);
            atomic_fetch_add_explicit(&truth[PARTS + 1], 1, memory_order_relaxed);
        }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    unsigned count = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
    int fd = argc > 3 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0 || count < 1 || count > THREADS_MAX || ftruncate(fd, WORDS * 8) != 0)
        return 2;
    limit_ns = (uint64_t)atoi(argv[3]) * NS_PER_MS;
    void *words = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        return 2;
    close(fd);
    truth = words;
    for (uintptr_t i = 0; i + 1 < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0)
            return 2;
    work((void *)(uintptr_t)count);
    for (unsigned i = 0; i + 1 < count; i++)
        pthread_join(threads[i], NULL);
    uint32_t seed = 7; // a result that can be compared
    uint64_t sum = 0, rounds;
    unsigned part;
    for (unsigned i = 0; i < 20; i++)
        sum = sum * 31 + step(&seed, &part, &rounds);
    printf("done %llx\n", (unsigned long long)sum);
    return 0;
}
