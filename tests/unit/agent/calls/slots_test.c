// SPDX-License-Identifier: Apache-2.0
// Slots of x86-64 where most are not: calls that gcc does not align, return addresses side by side.
#include <stdint.h>

#include "tests/unit/agent/calls/account.h"

// gcc does that with functions of the same file that do not need the alignment.
static int call_misaligned(int (*function)(int), int n, long by_bytes)
{
    long result;
    __asm__ volatile("movq %%rsp, %%rbx\n\tandq $-16, %%rsp\n\tsubq $128, %%rsp\n\tsubq %3, %%rsp\n\t"
                     "call *%1\n\tmovq %%rbx, %%rsp"
                     : "=a"(result)
                     : "r"(function), "D"((long)n), "r"(by_bytes)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return (int)result;
}

TEST(misaligned_calls_are_traced)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    for (int i = 0; i < 10; i++)
        CHECK(call_misaligned(leaf, i, i % 2 * 8) == (i ^ 5), "at %d", i);
    thunks_drain();
    check_whole(LEAF);
    check_order();
    CHECK(told[LEAF] == 10 && thunks_header()->passed_misaligned == 0, "%lu", thunks_header()->passed_misaligned);
}

// An outer call's slot with the inner one's directly below it: both keep what is theirs.
int without_frame(int n, int (*function)(int));
__asm__(".pushsection .text\n\t.type without_frame, @function\nwithout_frame:\n\t.byte 0x0f, 0x1f, 0x44, 0, 0\n\t"
        "call *%rsi\n\tret\n\t.size without_frame, . - without_frame\n\t.popsection");

TEST(slots_stand_side_by_side)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    CHECK(THUNKS_TRACE(without_frame, MIDDLE), "no nops");
    for (int i = 0; i < 10; i++)
        CHECK(without_frame(i, leaf) == (i ^ 5), "at %d", i);
    told[MIDDLE] = 10;
    thunks_drain();
    check_whole(LEAF);
    check_whole(MIDDLE);
    check_order();
}

TEST(odd_slots_pass)
{
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    CHECK(call_misaligned(leaf, 3, 4) == (3 ^ 5), "wrong");
    thunks_drain();
    CHECK(thunks_sums()->events == 0 && thunks_header()->passed_misaligned == 1, "%lu events, %lu passed",
          thunks_sums()->events, thunks_header()->passed_misaligned);
}

int main(void)
{
    RUN_ALONE(misaligned_calls_are_traced);
    RUN_ALONE(slots_stand_side_by_side);
    RUN_ALONE(odd_slots_pass);
    return tap_finish();
}
