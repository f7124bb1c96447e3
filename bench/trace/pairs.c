// SPDX-License-Identifier: Apache-2.0
// What a call costs: a leaf in a loop, and a recursion. Prints nanoseconds a call, the least of its rounds.
// usage: pairs [CALLS [ROUNDS [leaf]]]    "leaf": without the recursion, of which 0 is said
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __clang__
#define TRACED __attribute__((noinline))
#else
#define TRACED __attribute__((noinline, noclone, noipa))
#endif
#if defined __clang__ && __has_attribute(xray_always_instrument)
#define ALWAYS __attribute__((xray_always_instrument))
#else
#define ALWAYS
#endif

__attribute__((no_instrument_function)) static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

TRACED ALWAYS uint64_t traced_leaf(uint64_t x);
#ifdef ONE_BYTE
// A loop that is never taken leads to the second byte: a jump has no room, a trap has.
__asm__(".text\n"
        ".globl traced_leaf\n"
        ".type traced_leaf, @function\n"
        "traced_leaf:\n"
        "  .cfi_startproc\n"
        "  push %rbx\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "1: test %rsp, %rsp\n"
        "  jz 1b\n"
        "  lea 1(%rdi), %rax\n"
        "  pop %rbx\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        "  .size traced_leaf, . - traced_leaf\n");
#else
uint64_t traced_leaf(uint64_t x)
{
#ifdef ONE_TRAP
    __asm__ volatile("int3"); // what a trap costs at least
#endif
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}
#endif

TRACED ALWAYS uint64_t traced_fib(uint64_t n);
uint64_t traced_fib(uint64_t n)
{
    uint64_t sum = n;
    if (n >= 2) {
        sum = traced_fib(n - 1);
        __asm__ volatile("" : "+r"(sum)); // neither a loop nor a copy of itself
        sum += traced_fib(n - 2);
    }
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

#ifdef ONE_TRAP
static void do_nothing(int number)
{
    (void)number;
}
#endif

__attribute__((no_instrument_function)) int main(int argc, char **argv)
{
    const uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    const int has_fib = argc <= 3;
    const unsigned depth = 20, fib_calls = 21891; // of traced_fib(20)
    double leaf_ns = 1e30, fib_ns = 1e30;
    uint64_t sum = 0;
#ifdef ONE_TRAP
    signal(SIGTRAP, do_nothing);
#endif
    for (int round = 0; round < rounds; round++) {
        double begin = now_ns();
        for (uint64_t i = 0; i < calls; i++)
            sum += traced_leaf(i);
        double ns = (now_ns() - begin) / (double)calls;
        leaf_ns = ns < leaf_ns ? ns : leaf_ns;
        if (!has_fib)
            continue;
        const uint64_t times = calls / fib_calls + 1;
        begin = now_ns();
        for (uint64_t i = 0; i < times; i++)
            sum += traced_fib(depth);
        ns = (now_ns() - begin) / (double)(times * fib_calls);
        fib_ns = ns < fib_ns ? ns : fib_ns;
    }
    printf("leaf %.2f fib %.2f sum %llu\n", leaf_ns, has_fib ? fib_ns : 0, (unsigned long long)sum);
    return 0;
}
