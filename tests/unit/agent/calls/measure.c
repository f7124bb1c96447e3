// SPDX-License-Identifier: Apache-2.0
// What a traced call costs: prints nanoseconds a pair, the least of some rounds, of a small function called in a loop
// and of a recursive one. No test: figures are for reading. The ring has room for all events of a round, and is
// touched before.
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "tests/unit/agent/calls/account.h"

enum { CALLS = 30000, ROUNDS = 500, FIB_OF = 20, FIB_CALLS = 21891 };

TRACED static long plain(long n)
{
    return n * 3 + 1;
}

TRACED static long recursive(int n)
{
    return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least_ns(bool is_recursive)
{
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        long sum = 0;
        const double begin = now_ns();
        if (is_recursive)
            sum = recursive(FIB_OF);
        else
            for (int i = 0; i < CALLS; i++)
                sum += plain(sum);
        const double each = (now_ns() - begin) / (is_recursive ? FIB_CALLS : CALLS);
        sink += (int)sum;
        if (each < least)
            least = each;
        if (thunks_header())
            thunks_drain();
    }
    return least;
}

static void show(const char *what)
{
    printf("%-28s loop %6.2f ns   fib %6.2f ns\n", what, least_ns(false), least_ns(true));
}

TEST(pairs)
{
    show("not traced");
    trace_begins(RING, 2);
    thunks_trace((void (*)(void))plain, 1);
    thunks_trace((void (*)(void))recursive, 2);
    show("enter and exit");
    CHECK(thunks_ring(0)->lost_enters == 0, "%lu lost", thunks_ring(0)->lost_enters);
    thunks_undo();
    thunks_count((void (*)(void))plain, 1, false);
    thunks_count((void (*)(void))recursive, 2, false);
    show("counted by the thunk");
    thunks_undo();
    thunks_count((void (*)(void))plain, 3, true);
    thunks_count((void (*)(void))recursive, 4, true);
    show("counted by the stub");
    thunks_undo();
    show("put back");
}

int main(void)
{
    RUN_ALONE(pairs);
    return tap_finish();
}
