// SPDX-License-Identifier: Apache-2.0
// Processes that are left alone count once each, however often they are told of, and whichever process had their number
// before.
#include "tests/support/tap.h"
#include "tracer/record/left_alone.h"

static struct left left;

static uint64_t tell(uint32_t pid, enum agent_left why, bool is_child, bool is_taken)
{
    const struct agent_channel_left told = {.why = why, .is_child = is_child, .is_taken = is_taken};
    record_left_take(&left, &told, pid);
    return record_left_sum(&left.counts);
}

TEST(one_process_counts_once)
{
    left = (struct left){.next = 0};
    CHECK(tell(7, AGENT_LEFT_STATIC, false, false) == 1, "told of");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, false) == 1 && left.counts.of[AGENT_LEFT_STATIC] == 0, "the last reason");
    CHECK(tell(7, AGENT_LEFT_LIBC, true, false) == 2, "a child of it");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, true) == 1, "taken back");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, true) == 1, "nothing is left to be taken back");
}

TEST(one_that_nobody_can_name_counts_each_time)
{
    left = (struct left){.next = 0};
    tell(0, AGENT_LEFT_STATIC, false, false);
    CHECK(tell(0, AGENT_LEFT_STATIC, false, false) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
    CHECK(tell(0, AGENT_LEFT_STATIC, false, true) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
}

TEST(a_number_is_given_again)
{
    left = (struct left){.next = 0};
    tell(7, AGENT_LEFT_STATIC, false, false);
    record_left_forget(&left, 7);
    CHECK(tell(7, AGENT_LEFT_STATIC, false, true) == 1, "its exec failed: the other one's counts");
    CHECK(tell(7, AGENT_LEFT_STATIC, false, false) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
}

TEST(more_than_are_remembered)
{
    left = (struct left){.next = 0};
    for (uint32_t pid = 1; pid <= 3 * LEFT_REMEMBERED; pid++)
        CHECK(tell(pid, AGENT_LEFT_STATIC, false, false) == pid, "%u", pid);
    CHECK(tell(3 * LEFT_REMEMBERED, AGENT_LEFT_STATIC, false, true) == 3 * LEFT_REMEMBERED - 1, "the last one");
    CHECK(tell(1, AGENT_LEFT_STATIC, false, true) == 3 * LEFT_REMEMBERED - 1, "the first one");
}

int main(void)
{
    RUN(one_process_counts_once);
    RUN(one_that_nobody_can_name_counts_each_time);
    RUN(a_number_is_given_again);
    RUN(more_than_are_remembered);
    return tap_finish();
}
