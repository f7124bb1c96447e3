// SPDX-License-Identifier: Apache-2.0
// Calls that were too short are left out, whole; what is written closes as it would have.
#include "tracer/traced/filter.h"

#include <string.h>

#include "tests/support/tap.h"

enum { LEAST = 100, EVENTS_MAX = 64, FUNCTIONS = 16 };
#define STACK         UINT64_C(0x7ffff0000008)
#define OTHER         UINT64_C(0x7fff80000008)
#define DEEPER(steps) (STACK - 64 * (uint64_t)(steps))

static struct qut_calls_event given[EVENTS_MAX];
static size_t given_count;
static unsigned left_out[FUNCTIONS];

static void note(void *context, uint32_t function)
{
    (void)context;
    left_out[function]++;
}

// From 8 on functions have their own: 10 ticks for each one.
static uint64_t least_ticks(const void *context, uint32_t function)
{
    (void)context;
    return function < 8 ? (uint64_t)LEAST : (function - 8) * UINT64_C(10);
}

static const struct traced_filter_options options = {.least_ticks = least_ticks, .shorter = note};

static void add(uint64_t ticks, uint64_t slot, bool is_exit, uint32_t id)
{
    given[given_count++] = (struct qut_calls_event){.time_ticks = ticks, .word = qut_calls_word(slot, is_exit, id)};
}

static void enter(uint64_t ticks, uint64_t slot, uint32_t id)
{
    add(ticks, slot, false, id);
}

static void leave(uint64_t ticks, uint64_t slot, uint32_t id)
{
    add(ticks, slot, true, id);
}

// What is written of `given`, as text: "+1 -1 "; at each cut of the events the same.
static void expect(const char *wanted, unsigned line)
{
    for (size_t cut = 0; cut <= given_count; cut++) {
        struct traced_filter filter = {.written = 0};
        struct traced_filter_out out = {.count = 0};
        char text[EVENTS_MAX * 4] = "";
        memset(left_out, 0, sizeof left_out);
        bool is_done = traced_filter(&filter, &options, given, cut, &out) &&
                       traced_filter(&filter, &options, given + cut, given_count - cut, &out);
        for (size_t i = 0; i < out.count; i++) {
            const uint64_t word = out.items[i].word;
            sprintf(text + strlen(text), "%c%u ", qut_calls_word_is_exit(word) ? '-' : '+', qut_calls_word_id(word));
        }
        CHECK(is_done && strcmp(text, wanted) == 0, "line %u, cut at %zu: \"%s\", not \"%s\"", line, cut, text, wanted);
        base_vector_free(&out.vector);
        traced_filter_free(&filter);
    }
    given_count = 0;
}
#define EXPECT(wanted) expect(wanted, __LINE__)

TEST(long_calls_stay_with_those_around_them)
{
    enter(0, STACK, 1), enter(10, DEEPER(1), 2), leave(20, DEEPER(1), 2);
    enter(30, DEEPER(1), 3), leave(150, DEEPER(1), 3), leave(160, STACK, 1);
    EXPECT("+1 +3 -3 -1 ");
    CHECK(left_out[2] == 1 && left_out[1] == 0, "one is left out");
}

TEST(short_ones_are_forgotten)
{
    enter(0, STACK, 1), leave(99, STACK, 1), enter(100, STACK, 1), leave(200, STACK, 1);
    EXPECT("+1 -1 ");
}

TEST(an_exit_whose_entry_is_not_known_is_written)
{
    leave(5, STACK, 4);
    EXPECT("-4 ");
}

TEST(exceptions_leave_inner_calls_behind)
{
    enter(0, STACK, 1), enter(1, DEEPER(1), 2), enter(2, DEEPER(2), 3);
    leave(300, STACK, 1); // 2 and 3 were unwound, somewhen
    EXPECT("+1 +2 +3 -1 ");
    enter(0, STACK, 1), enter(1, DEEPER(1), 2), leave(50, STACK, 1);
    EXPECT("");
    CHECK(left_out[1] == 1 && left_out[2] == 1, "both");
}

TEST(a_tail_call_of_a_long_one_is_written)
{
    enter(0, STACK, 1), enter(200, STACK, 2), leave(210, STACK, 2);
    EXPECT("+1 +2 -2 ");
    // Of a short one: only the last is seen to be long.
    enter(0, STACK, 1), enter(50, STACK, 2), leave(210, STACK, 2);
    EXPECT("+2 -2 ");
}

TEST(stacks_do_not_close_each_other)
{
    enter(0, STACK, 1), enter(10, OTHER, 2), enter(20, DEEPER(1), 3), leave(30, DEEPER(1), 3);
    leave(300, OTHER, 2), leave(310, STACK, 1);
    EXPECT("+1 +2 -2 -1 ");
}

TEST(each_function_has_its_own)
{
    // 10 ticks are enough for 9, and not for 10.
    enter(0, STACK, 9), leave(15, STACK, 9), enter(20, STACK, 10), leave(35, STACK, 10);
    EXPECT("+9 -9 ");
    CHECK(left_out[10] == 1 && left_out[9] == 0, "the other one");
    // Without any time all are kept, and those around them.
    enter(0, STACK, 1), enter(1, DEEPER(1), 8), leave(1, DEEPER(1), 8), leave(2, STACK, 1);
    EXPECT("+1 +8 -8 -1 ");
    // One further in is long enough first: it and those around it come at once, others when they are due.
    enter(0, STACK, 15), enter(10, DEEPER(1), 1), enter(20, DEEPER(2), 9), enter(25, DEEPER(3), 14);
    leave(34, DEEPER(3), 14), leave(36, DEEPER(2), 9), leave(40, DEEPER(1), 1), leave(45, STACK, 15);
    EXPECT("+15 +1 +9 -9 -1 -15 ");
    CHECK(left_out[14] == 1 && left_out[15] == 0 && left_out[1] == 0, "the innermost one alone");
    // One that is due later than one further in, and is not written by it.
    enter(0, STACK, 10), enter(5, DEEPER(1), 15), leave(15, DEEPER(1), 15), leave(30, STACK, 10);
    EXPECT("+10 -10 ");
    enter(0, STACK, 15), enter(5, DEEPER(1), 9), leave(10, DEEPER(1), 9), leave(65, STACK, 15);
    EXPECT("");
    CHECK(left_out[9] == 1 && left_out[15] == 1, "both were too short");
}

TEST(what_is_open_at_the_end)
{
    struct traced_filter filter = {.written = 0};
    struct traced_filter_out out = {.count = 0};
    memset(left_out, 0, sizeof left_out);
    enter(0, STACK, 1), enter(150, DEEPER(1), 2);
    CHECK(traced_filter(&filter, &options, given, given_count, &out) && out.count == 1, "the outer one");
    CHECK(traced_filter_end(&filter, &options, 200, &out) && out.count == 1 && left_out[2] == 1,
          "the inner one is not long enough");
    given_count = 0;
    base_vector_free(&out.vector);
    traced_filter_free(&filter);
}

int main(void)
{
    RUN(long_calls_stay_with_those_around_them);
    RUN(short_ones_are_forgotten);
    RUN(an_exit_whose_entry_is_not_known_is_written);
    RUN(exceptions_leave_inner_calls_behind);
    RUN(a_tail_call_of_a_long_one_is_written);
    RUN(stacks_do_not_close_each_other);
    RUN(each_function_has_its_own);
    RUN(what_is_open_at_the_end);
    return tap_finish();
}
