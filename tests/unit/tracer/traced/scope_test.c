// SPDX-License-Identifier: Apache-2.0
// Calls within a caller's, and no deeper than so many: each entry that is kept has its exit.
#include "tracer/traced/scope.h"

#include <string.h>

#include "tests/support/tap.h"

enum { EVENTS_MAX = 64, CALLER = 3 };
#define STACK UINT64_C(0x7ffff0000008)

static unsigned left_out;

static bool is_caller(const void *context, uint32_t function)
{
    (void)context;
    return function == CALLER;
}

static void note(void *context, uint32_t function)
{
    (void)context;
    (void)function;
    left_out++;
}

// "a1 b2 /b2 >c2": entries, exits and jumps of functions (a is 1) at depths; at each cut the same.
static size_t take(const char *text, struct qut_calls_event *events)
{
    size_t count = 0;
    for (; *text; text += *text == ' ') {
        const bool is_exit = *text == '/', is_jump = *text == '>';
        text += is_exit || is_jump;
        const uint64_t word =
            qut_calls_word(STACK - 64 * (uint64_t)(text[1] - '0'), is_exit, (uint32_t)(*text - 'a' + 1));
        events[count] =
            (struct qut_calls_event){.time_ticks = count + 1, .word = word | (is_jump ? QUT_CALLS_EVENT_TAIL : 0)};
        count++;
        text += 2;
    }
    return count;
}

static void expect(bool has_callers, uint32_t depth, const char *told, const char *wanted, unsigned line)
{
    const struct traced_scope_options options = {
        .has_callers = has_callers, .is_caller = is_caller, .left_out = note, .depth = depth};
    struct qut_calls_event events[EVENTS_MAX];
    const size_t count = take(told, events);
    for (size_t cut = 0; cut <= count; cut++) {
        struct traced_scope scope = {.callers = 0};
        char text[EVENTS_MAX * 4] = "";
        left_out = 0;
        take(told, events);
        const ptrdiff_t first = traced_scope(&scope, &options, events, cut);
        const ptrdiff_t second = traced_scope(&scope, &options, events + cut, count - cut);
        for (ptrdiff_t i = 0; i < first + second; i++) {
            const uint64_t word = i < first ? events[i].word : events[(ptrdiff_t)cut + i - first].word;
            sprintf(text + strlen(text), "%s%s%c", i ? " " : "", qut_calls_word_is_exit(word) ? "/" : "",
                    (char)('a' + qut_calls_word_id(word) - 1));
        }
        CHECK(strcmp(text, wanted) == 0, "line %u, cut at %zu: \"%s\", not \"%s\"", line, cut, text, wanted);
        traced_scope_free(&scope);
    }
}
#define WITHIN(told, wanted)      expect(true, 0, told, wanted, __LINE__)
#define DEEP(depth, told, wanted) expect(false, depth, told, wanted, __LINE__)

TEST(what_a_caller_calls_is_kept)
{
    WITHIN("a1 /a1 c1 a2 b3 /b3 /a2 /c1 a1 /a1", "c a b /b /a /c");
    CHECK(left_out == 2, "%u", left_out);
    WITHIN("a1 c2 a3 /a3 /c2 b2 /b2 /a1", "c a /a /c");
    WITHIN("c1 c2 /c2 a2 /a2 /c1 a1 /a1", "c c /c a /a /c");
}

TEST(ends_that_have_no_exit_end_it)
{
    WITHIN("a1 c2 b3 a2 /a2 /a1", "c b"); // an exception: another one is called where it was
    WITHIN("a1 c3 b4 /a1 b1 /b1", "c b");
    WITHIN("c1 >a1 b2 /b2 /a1 a1 /a1", "c a b /b /a"); // a jump: its return is the caller's
}

TEST(an_exit_without_an_entry_is_outside)
{
    WITHIN("/a1 c2 /b3 /c2", "c /c");
    DEEP(2, "/a1 c2 /c2", "/a c /c");
}

TEST(only_so_deep)
{
    DEEP(1, "a1 b2 c3 /c3 /b2 /a1 b1 /b1", "a /a b /b");
    DEEP(2, "a1 b2 c3 d4 /b2 c2 /c2 /a1", "a b /b c /c /a");
    DEEP(1, "a1 >b1 c2 /c2 /b1", "a b /b");
    expect(true, 2, "a1 b2 c3 a4 b5 /b5 /a4 a4 /a4 /c3 /b2 /a1", "c a /a a /a /c", __LINE__);
}

int main(void)
{
    RUN(what_a_caller_calls_is_kept);
    RUN(ends_that_have_no_exit_end_it);
    RUN(an_exit_without_an_entry_is_outside);
    RUN(only_so_deep);
    return tap_finish();
}
