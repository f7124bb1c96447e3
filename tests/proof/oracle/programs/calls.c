// SPDX-License-Identifier: Apache-2.0
// A program with every way of calling and returning that compilers and the C library use: the oracle's smallest case,
// built for each architecture.
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, usr1s, nested;
static jmp_buf back;
static sigjmp_buf out_of_handler;

static __attribute__((noinline)) unsigned long fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int by_value(const void *left, const void *right)
{
    int l = *(const int *)left, r = *(const int *)right;
    return (l > r) - (l < r);
}

static __attribute__((noinline)) int sum(int count, ...)
{
    va_list values;
    int total = 0;
    va_start(values, count);
    for (int i = 0; i < count; i++)
        total += va_arg(values, int);
    va_end(values);
    return total;
}

static __attribute__((noinline)) double mean(int count, ...)
{
    va_list values;
    double total = 0;
    va_start(values, count);
    for (int i = 0; i < count; i++)
        total += va_arg(values, double);
    va_end(values);
    return total / count;
}

static __attribute__((noinline)) size_t on_stack(size_t size)
{
    char *text = alloca(size);
    memset(text, 'x', size - 1);
    text[size - 1] = 0;
    return strlen(text) + (size > 40 ? on_stack(size / 2) : 0);
}

static __attribute__((noinline)) int aligned(int value)
{
    _Alignas(64) volatile int words[16];
    words[0] = value;
    words[15] = (int)fibonacci(5);
    return words[0] + words[15];
}

static __attribute__((noinline)) int many_registers(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
    int p = a * b, q = c * d, r = e * f, s = g * h;
    p += (int)fibonacci(3), q += sum(3, p, a, b), r += sum(2, q, c), s += sum(2, r, i);
    return p ^ q ^ r ^ s;
}

static __attribute__((noinline)) void jump_out(int depth)
{
    if (depth == 0)
        longjmp(back, 7);
    jump_out(depth - 1);
    ticks++;
}

static __attribute__((noinline)) void jump_straight(void)
{
    longjmp(back, 9);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    if (number == SIGALRM) {
        ticks++;
        return;
    }
    usr1s += (int)fibonacci(4) > 0;
    if (number == SIGUSR1)
        raise(SIGUSR2);
    else
        nested++;
}

static void on_jump_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    siglongjmp(out_of_handler, 1);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
    sigaction(number, &action, NULL);
}

static void signals(void)
{
    handle(SIGUSR1, on_signal, 0);
    handle(SIGUSR2, on_signal, 0);
    handle(SIGALRM, on_signal, 0);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    handle(SIGUSR1, on_jump_signal, 0);
    for (volatile int i = 0; i < 5; i++)
        if (!sigsetjmp(out_of_handler, 1))
            raise(SIGUSR1);
    struct itimerval soon = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 2000 && ticks < 20; i++)
        fibonacci(10);
    setitimer(ITIMER_REAL, &never, NULL);
}

static void on_other_stack(void)
{
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, on_signal, SA_ONSTACK);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    free(stack.ss_sp);
}

int main(int argc, char **argv)
{
    int values[200], total = 0;
    (void)argv;
    for (int i = 0; i < 200; i++)
        values[i] = (i * 7919) % 1009;
    qsort(values, 200, sizeof *values, by_value);
    total += sum(5, values[0], values[50], values[100], values[150], values[199]);
    total += (int)on_stack(1000) + aligned(argc) + many_registers(1, 2, 3, 4, 5, 6, 7, 8, argc);
    total += (int)mean(4, 1.0, 2.0, 3.0, 4.0) + (int)fibonacci(15);
    for (volatile int i = 0; i < 3; i++)
        if (!setjmp(back))
            jump_out((int)i * 3);
    if (!setjmp(back))
        jump_straight();
    signals();
    on_other_stack();
    printf("%d %.3f %s\n", total, mean(2, 1.5, (double)argc), usr1s > 0 && nested > 0 ? "signals" : "none");
    return 0;
}
