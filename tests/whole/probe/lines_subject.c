// SPDX-License-Identifier: Apache-2.0
// Counts how often it comes to lines of its own, by what stands in them: each line that is marked passes its counter.
//
//   lines_subject places            prints NAME LINE of each
//   lines_subject THREADS ROUNDS    prints NAME PASSED of each
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = 5, THREADS_MAX = 16 };
enum mark { IN_LOOP, IN_BRANCH, IN_INLINED, IN_SELDOM, IN_ONE_LINE };
static const char *const names[MARKS] = {"loop", "branch", "inlined", "seldom", "one_line"};
static int lines[MARKS];
static __thread volatile unsigned long passed[MARKS];
static unsigned long sums[MARKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned rounds;

#define PASS(mark) (passed[mark]++, lines[mark] = __LINE__)

static inline __attribute__((always_inline)) unsigned twice_inlined(unsigned value)
{
    value ^= value << 3;
    PASS(IN_INLINED);
    return value * 2654435761u;
}

__attribute__((noinline)) static unsigned first_user(unsigned value)
{
    return twice_inlined(value + 1);
}

__attribute__((noinline)) static unsigned second_user(unsigned value)
{
    return twice_inlined(value) ^ twice_inlined(value + 7);
}

__attribute__((noinline, cold)) static void seldom(unsigned value)
{
    PASS(IN_SELDOM);
    __asm__ volatile("" ::"r"(value));
}

__attribute__((noinline)) static unsigned with_loop(unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += i * sum;
        PASS(IN_LOOP);
        if (i % 3 == 1)
            PASS(IN_BRANCH);
        if (__builtin_expect(i % 1000 == 999, 0))
            seldom(sum);
    }
    return sum;
}

__attribute__((noinline)) static void one_line(void)
{
    PASS(IN_ONE_LINE);
}

static void *run(void *unused)
{
    unsigned value = 1;
    for (unsigned i = 0; i < rounds; i++) {
        value += first_user(value) + second_user(value) + with_loop(5 + i % 1200);
        one_line();
    }
    __asm__ volatile("" ::"r"(value));
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MARKS; i++)
        sums[i] += passed[i];
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    const int count = argc == 3 ? atoi(argv[1]) : 1;
    rounds = argc == 3 ? (unsigned)atoi(argv[2]) : 1001;
    if (count < 1 || count > THREADS_MAX)
        return 2;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < MARKS; i++)
        printf("%s %lu\n", names[i], argc == 3 ? sums[i] : (unsigned long)lines[i]);
    return 0;
}
