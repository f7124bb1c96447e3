// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/marks.h"

// Something the compiler must keep: calls of functions without effect can be left out, even calls of noinline ones.
__attribute__((noinline)) void bench_count_on(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void bench_count_off(void)
{
    __asm__ volatile("" ::: "memory");
}
