// SPDX-License-Identifier: Apache-2.0
// Calls that were too short are left out, whole; what is written closes as it would have.
#include "tracer/traced/filter.h"

#include <string.h>

#include "tests/support/tap.h"

enum { LEAST = 100, EVENTS_MAX = 64, FUNCTIONS = 8 };
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
        bool is_done = traced_filter(&filter, given, cut, LEAST, &out, note, NULL) &&
                       traced_filter(&filter, given + cut, given_count - cut, LEAST, &out, note, NULL);
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

TEST(what_is_open_at_the_end)
{
    struct traced_filter filter = {.written = 0};
    struct traced_filter_out out = {.count = 0};
    memset(left_out, 0, sizeof left_out);
    enter(0, STACK, 1), enter(150, DEEPER(1), 2);
    CHECK(traced_filter(&filter, given, given_count, LEAST, &out, note, NULL) && out.count == 1, "the outer one");
    CHECK(traced_filter_end(&filter, 200, LEAST, &out, note, NULL) && out.count == 1 && left_out[2] == 1,
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
    RUN(what_is_open_at_the_end);
    return tap_finish();
}
