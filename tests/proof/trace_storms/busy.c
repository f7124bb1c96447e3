// SPDX-License-Identifier: Apache-2.0
// Eight threads that are always inside of functions whose names begin with traced_, all of which return: six that
// compute, one of which is interrupted by a handler that calls them, too; one that sleeps deep inside, one with a
// coroutine that stands still inside. All results are checked. Ends when its standard input does.
// usage: busy; prints "ready", and at its end how many calls were made; exit status 1: a result was wrong.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { COMPUTING = 6, THREADS = 8, FUNCTIONS = 64, DEPTH = 30, FIB_OF = 10, FIB_IS = 55, STACK_BYTES = 1 << 16 };
#define TRACED __attribute__((noinline, noclone, noipa))

static volatile int is_over;
static uint64_t calls, wrong; // relaxed

static void check(uint64_t result, uint64_t right)
{
    if (result != right)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

// So that no recursion is a loop, and no call the last thing that a function does.
static inline uint64_t behind(uint64_t result)
{
    __asm__ volatile("" : "+r"(result));
    return result;
}

static TRACED uint64_t traced_fib(unsigned n)
{
    return n < 2 ? n : behind(traced_fib(n - 1)) + behind(traced_fib(n - 2));
}

// traced_00 to traced_77, which call each other: as deep as the lowest three bits say. All give what they take.
#define EACH_OF_8(X, N) X(N##0) X(N##1) X(N##2) X(N##3) X(N##4) X(N##5) X(N##6) X(N##7)
#define EACH(X)                                                                                                        \
    EACH_OF_8(X, 0)                                                                                                    \
    EACH_OF_8(X, 1)                                                                                                    \
    EACH_OF_8(X, 2)                                                                                                    \
    EACH_OF_8(X, 3)                                                                                                    \
    EACH_OF_8(X, 4)                                                                                                    \
    EACH_OF_8(X, 5)                                                                                                    \
    EACH_OF_8(X, 6)                                                                                                    \
    EACH_OF_8(X, 7)
#define DECLARE(N) static TRACED uint64_t traced_##N(uint64_t x);
#define POINT(N)   traced_##N,
#define DEFINE(N)                                                                                                      \
    static TRACED uint64_t traced_##N(uint64_t x)                                                                      \
    {                                                                                                                  \
        return (x & 7) ? behind(functions[x * 5 % FUNCTIONS](x - 1)) + 1 : x;                                          \
    }
EACH(DECLARE)
static uint64_t (*const functions[FUNCTIONS])(uint64_t) = {EACH(POINT)};
EACH(DEFINE)

static TRACED double traced_floats(double a, double b, double c, double d, double e, double f, double g, double h,
                                   double i)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

static void compute_once(uint64_t x)
{
    check(traced_fib(FIB_OF), FIB_IS);
    check((uint64_t)traced_floats(1, 1, 1, 1, 1, 1, 1, 1, 1), 45);
    check(functions[x % FUNCTIONS](x), x);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static TRACED void traced_handler(int number)
{
    (void)number;
    check(traced_fib(3), 2);
}

static void interrupt_often(void)
{
    static char stack[STACK_BYTES];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_handler = traced_handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    const struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    timer_t timer;
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        abort();
}

static void *compute(void *number)
{
    if (!number)
        interrupt_often();
    for (uint64_t x = (uintptr_t)number; !is_over; x += 13) {
        compute_once(x);
        if (x % 16 == 0)
            sched_yield(); // on two processors, who traces us needs one, too
    }
    return NULL;
}

static TRACED uint64_t traced_sleeper(unsigned depth)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    if (depth)
        return behind(traced_sleeper(depth - 1)) + 1;
    nanosleep(&nap, NULL);
    return 0;
}

static void *sleep_inside(void *unused)
{
    while (!is_over)
        check(traced_sleeper(DEPTH), DEPTH);
    return unused;
}

static ucontext_t outside, inside;

static TRACED uint64_t traced_stands_still(unsigned depth)
{
    uint64_t result = depth ? behind(traced_stands_still(depth - 1)) + 1 : 0;
    if (!depth)
        swapcontext(&inside, &outside);
    return result;
}

static void coroutine(void)
{
    for (;;)
        check(traced_stands_still(DEPTH), DEPTH);
}

static void *switch_stacks(void *unused)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || getcontext(&inside) != 0)
        abort();
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK_BYTES;
    makecontext(&inside, coroutine, 0);
    while (!is_over) {
        swapcontext(&outside, &inside);
        compute_once(3);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    char byte;
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL,
                           i < COMPUTING    ? compute
                           : i == COMPUTING ? sleep_inside
                                            : switch_stacks,
                           (void *)i) != 0)
            abort();
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    is_over = 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu rounds, %llu wrong\n", (unsigned long long)calls, (unsigned long long)wrong);
    return wrong != 0;
}
