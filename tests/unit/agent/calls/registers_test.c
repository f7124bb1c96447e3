// SPDX-License-Identifier: Apache-2.0
// Every register is the same at a traced function's entry as at its call, and the same behind its return: on the short
// way through the stubs, and on the long ones (a new thread, a new stack, a full ring).
#include <cpuid.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/agent/calls/account.h"

struct registers {
    uint64_t general[16];
    uint8_t vectors[16][32];
    uint32_t mxcsr, zero[3];
};

void registers_call(struct registers *given, struct registers *at_entry, struct registers *at_exit,
                    void (*function)(void), long has_avx);
void registers_function_traced(void);

static bool has_avx(void)
{
    enum { OSXSAVE_AND_AVX = 1 << 27 | 1 << 28 };
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & OSXSAVE_AND_AVX) == OSXSAVE_AND_AVX;
}

static void check_same(const struct registers *given, const struct registers *found, const char *where, unsigned call)
{
    const size_t size = has_avx() ? 32 : 16;
    for (unsigned i = 0; i < 16; i++) {
        CHECK(i == 4 || given->general[i] == found->general[i], "%s of call %u: register %u is %#lx", where, call, i,
              found->general[i]);
        CHECK(memcmp(given->vectors[i], found->vectors[i], size) == 0, "%s of call %u: vector %u", where, call, i);
    }
    CHECK(given->mxcsr == found->mxcsr, "%s of call %u: mxcsr %#x", where, call, found->mxcsr);
}

static void call_with_values(unsigned call)
{
    struct registers given, at_entry, at_exit;
    memset(&at_entry, 0, sizeof at_entry);
    memset(&at_exit, 0, sizeof at_exit);
    for (unsigned i = 0; i < 16; i++) {
        given.general[i] = UINT64_C(0x8123456789abcde1) * (i + 1 + call * 16);
        for (unsigned j = 0; j < 32; j++)
            given.vectors[i][j] = (uint8_t)(i * 37 + j * 11 + call);
    }
    given.mxcsr = 0x1f80 | 1 << 15; // flush to zero: not what it is by itself
    registers_call(&given, &at_entry, &at_exit, registers_function_traced, has_avx());
    __builtin_ia32_ldmxcsr(0x1f80);
    // rax is what store_all needs: kept in place of rdi, looked at by its function.
    check_same(&given, &at_entry, "entry", call);
    check_same(&given, &at_exit, "exit", call);
    CHECK(at_exit.general[4] - 8 == at_entry.general[4], "rsp %#lx, %#lx", at_entry.general[4], at_exit.general[4]);
}

TEST(untraced_calls_keep_them)
{
    call_with_values(0);
}

TEST(events_keep_them)
{
    enum { CALLS = 200 }; // the first by way of a new stack and thread; the last where the ring is full
    trace_begins(SMALL_RING, 2);
    CHECK(thunks_trace(registers_function_traced, 1), "no nops");
    for (unsigned i = 0; i < CALLS; i++)
        call_with_values(i);
    const struct qut_calls_ring *ring = thunks_ring(0);
    CHECK(ring->lost_enters > 0 && ring->lost_exits > 0, "it was never full");
    thunks_drain();
    CHECK(thunks_sums()->enters[1] + ring->lost_enters == CALLS, "%lu", thunks_sums()->enters[1]);
}

TEST(counts_keep_them)
{
    trace_begins(RING, 2);
    thunks_count(registers_function_traced, 3, false);
    for (unsigned i = 0; i < 3; i++)
        call_with_values(i);
    CHECK(thunks_counted(3) == 3, "%lu", thunks_counted(3));
}

TEST(counts_by_the_stub_keep_them)
{
    trace_begins(RING, 2);
    thunks_count(registers_function_traced, 3, true);
    for (unsigned i = 0; i < 3; i++)
        call_with_values(i);
    CHECK(thunks_counted(3) == 3, "%lu", thunks_counted(3));
}

// By way of the counting alone, and of both: about half of the calls each.
TEST(thinning_keeps_them)
{
    enum { CALLS = 64, CELL = 3, THINNED = 4 };
    trace_begins(RING, 2);
    CHECK(thunks_thin(registers_function_traced, CELL, THINNED, 1), "no thunk");
    for (unsigned i = 0; i < CALLS; i++)
        call_with_values(i);
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    CHECK(thunks_counted(CELL) == CALLS, "%lu", thunks_counted(CELL));
    CHECK(sums->enters[THINNED] > CALLS / 4 && sums->enters[THINNED] < CALLS * 3 / 4, "%lu", sums->enters[THINNED]);
    CHECK(sums->exits[THINNED] == sums->enters[THINNED] && sums->enters[CELL] == 0 && sums->unpaired == 0, "%lu, %lu",
          sums->exits[THINNED], sums->enters[CELL]);
}

int main(void)
{
    RUN_ALONE(untraced_calls_keep_them);
    RUN_ALONE(events_keep_them);
    RUN_ALONE(counts_keep_them);
    RUN_ALONE(counts_by_the_stub_keep_them);
    RUN_ALONE(thinning_keeps_them);
    return tap_finish();
}
