// SPDX-License-Identifier: Apache-2.0
// What the traced functions of a test say of themselves, beside what the rings say of them.
#ifndef TESTS_UNIT_AGENT_CALLS_ACCOUNT_H
#define TESTS_UNIT_AGENT_CALLS_ACCOUNT_H

#include "tests/support/alone.h"
#include "tests/unit/agent/calls/thunks.h"

enum { FIB = 1, TAIL_A, TAIL_B, JUMPER, MIDDLE, LEAF, HANDLED, YIELDER, ENDS };
enum { RING = 1 << 20, SMALL_RING = 4096 };

static volatile int sink;
static uint64_t told[ENDS + 1]; // by the functions themselves

static inline void tell(unsigned id)
{
    __atomic_fetch_add(&told[id], 1, __ATOMIC_RELAXED);
}

static inline void trace_begins(uint64_t ring_bytes, uint32_t rings)
{
    int error = thunks_begin(ring_bytes, rings);
    CHECK(error == 0, "error %d", error);
    if (error != 0)
        _exit(1);
}

// All that was called was entered, and all that was entered was left.
static inline void check_whole(unsigned id)
{
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->enters[id] == told[id] && sums->exits[id] == told[id], "function %u: %lu calls, %lu enters, %lu exits",
          id, told[id], sums->enters[id], sums->exits[id]);
}

static inline void check_order(void)
{
    const struct thunks_sums *sums = thunks_sums();
    CHECK(sums->unpaired == 0 && sums->bad_ids == 0 && sums->open == 0, "%lu exits unpaired, %lu ids unknown, %lu open",
          sums->unpaired, sums->bad_ids, sums->open);
}

TRACED __attribute__((unused)) static long fib(int n)
{
    tell(FIB);
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

TRACED __attribute__((unused)) static int leaf(int n)
{
    tell(LEAF);
    return n ^ 5;
}

#endif
