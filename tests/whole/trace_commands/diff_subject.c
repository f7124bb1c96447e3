// SPDX-License-Identifier: Apache-2.0
// Functions that take turns for so many rounds. FIRST: how long the first one takes; the others take 300 and 100.
//
//     diff_subject ROUNDS
#include <stdint.h>
#include <stdlib.h>

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void work(int thousands)
{
    uint64_t x = sink | 1;
    for (int i = 0; i < 1000 * thousands; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

__attribute__((noinline)) static void first(void)
{
    work(FIRST);
}

__attribute__((noinline)) static void second(void)
{
    work(300);
}

__attribute__((noinline)) static void third(void)
{
    work(100);
}

__attribute__((noinline)) static void outer(void)
{
    first();
    second();
    sink++; // so that it is no jump
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        outer();
        third();
    }
    return 0;
}
