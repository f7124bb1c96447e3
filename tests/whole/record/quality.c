// SPDX-License-Identifier: Apache-2.0
// Uses processor time in a function that is inlined into another one: quality MS
#include <stdlib.h>
#include <time.h>

static volatile unsigned result;

static long used_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((always_inline)) static inline unsigned inlined_part(unsigned value)
{
    for (unsigned i = 0; i < 4000000; i++)
        value = value * 1664525 + 1013904223 + i;
    return value;
}

__attribute__((noinline)) static void outer_part(unsigned value)
{
    result = inlined_part(value);
}

int main(int argc, char **argv)
{
    for (long until = used_ms() + (argc > 1 ? atol(argv[1]) : 100); used_ms() < until;)
        outer_part(result);
    return 0;
}
