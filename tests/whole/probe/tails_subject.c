// SPDX-License-Identifier: Apache-2.0
// Functions that jump to others at their ends (tail calls), and keep an account: what has jumped has returned when that
// has, and is left when that is.
//
//     tails_subject THREADS ROUNDS LONG     prints a line for each function: NAME CALLS RETURNED LEFT RETVALS; LONG: so
//                                           many jumps one after the other, at the end
//     tails_subject wait                    prints "ready"; calls for ever; ends with its standard input
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

struct account {
    const char *name;
    long calls, returned, left, retvals;
};
static struct account first = {.name = "tail_first"}, middle = {.name = "tail_middle"}, last = {.name = "tail_last"},
                      hop = {.name = "tail_hop"}, deep = {.name = "tail_deep"}, even = {.name = "tail_even"},
                      odd = {.name = "tail_odd"};

long tail_first(long n, jmp_buf *out), tail_middle(long n, jmp_buf *out), tail_last(long n, jmp_buf *out);
long tail_hop(long depth), tail_deep(long depth), tail_even(long n), tail_odd(long n);

static void add(long *to, long number)
{
    __atomic_fetch_add(to, number, __ATOMIC_RELAXED);
}

APART long tail_last(long n, jmp_buf *out)
{
    add(&last.calls, 1);
    if (out && n % 5 == 0)
        longjmp(*out, 1);
    return n * 2;
}

APART long tail_middle(long n, jmp_buf *out)
{
    add(&middle.calls, 1);
    return n % 3 ? tail_last(n + 1, out) : n;
}

APART long tail_first(long n, jmp_buf *out)
{
    add(&first.calls, 1);
    return n % 2 ? tail_middle(n + 1, out) : n + 5;
}

APART long tail_hop(long depth)
{
    add(&hop.calls, 1);
    return tail_deep(depth);
}

APART long tail_deep(long depth)
{
    add(&deep.calls, 1);
    if (depth == 0)
        return 1;
    long below = tail_hop(depth - 1);
    __asm__ volatile("" : "+r"(below));
    return below + 1;
}

APART long tail_odd(long n)
{
    add(&odd.calls, 1);
    return n ? tail_even(n - 1) : 1;
}

APART long tail_even(long n)
{
    add(&even.calls, 1);
    return n ? tail_odd(n - 1) : 0;
}

static void end(struct account *account, bool has_returned, long retval)
{
    add(has_returned ? &account->returned : &account->left, 1);
    add(&account->retvals, has_returned ? retval : 0);
}

// All of those that the first one has led to.
static void end_first(long n, bool has_returned, long retval)
{
    end(&first, has_returned, retval);
    if (n % 2)
        end(&middle, has_returned, retval);
    if (n % 2 && (n + 1) % 3)
        end(&last, has_returned, retval);
}

static void try_first(long n)
{
    jmp_buf here;
    if (setjmp(here) == 0)
        end_first(n, true, tail_first(n, &here));
    else
        end_first(n, false, 0);
}

static void on_signal(int number)
{
    (void)number;
    for (long n = 1; n < 6; n += 2)
        end_first(n, true, tail_first(n, NULL));
}

static void jump_often(long jumps)
{
    const long retval = tail_even(jumps);
    add(&even.returned, jumps / 2 + 1);
    add(&odd.returned, (jumps + 1) / 2);
    add(&even.retvals, retval * (jumps / 2 + 1));
    add(&odd.retvals, retval * ((jumps + 1) / 2));
}

static void down(long depth)
{
    const long retval = tail_hop(depth);
    for (long i = 0; i <= depth; i++) {
        end(&hop, true, retval - i);
        end(&deep, true, retval - i);
    }
}

static void *run(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++) {
        try_first(i);
        if (i % 16 == 0)
            jump_often(i / 16 % 50);
        if (i % 64 == 0)
            down(i % 300);
    }
    try_first(2); // by which it is known that the last one was left
    return NULL;
}

static int wait_for_end(void)
{
    char ends;
    pthread_t thread;
    puts("ready");
    fflush(stdout);
    if (pthread_create(&thread, NULL, run, (void *)INTPTR_MAX) != 0)
        return 1;
    return read(STDIN_FILENO, &ends, 1) < 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "wait") == 0)
        return wait_for_end();
    if (argc != 4)
        return 2;
    const long threads = atol(argv[1]), rounds = atol(argv[2]);
    pthread_t ids[16];
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < threads && i < 16; i++)
        if (pthread_create(&ids[i], NULL, run, (void *)rounds) != 0)
            return 1;
    for (long i = 0; i < threads && i < 16; i++)
        pthread_join(ids[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    if (atol(argv[3]))
        jump_often(atol(argv[3]));
    const struct account *const all[] = {&first, &middle, &last, &hop, &deep, &even, &odd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("%s %ld %ld %ld %ld\n", all[i]->name, all[i]->calls, all[i]->returned, all[i]->left, all[i]->retvals);
    return 7;
}
