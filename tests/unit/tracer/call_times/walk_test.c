// SPDX-License-Identifier: Apache-2.0
// Which entry and which exit are one call, and how the others ended: told by hand for each way, and by programs at
// random that know what they did.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/call_times/story.h"
#include "tracer/call_times/walk.h"

struct log {
    char text[1024];
    size_t length;
    uint64_t entered, left;
    uint8_t *how; // by number; NULL: not kept
    const struct call_events *calls;
};

static char name_of(const struct log *log, const struct call_times_call *call)
{
    return log->calls->functions.items[call->function].name[0];
}

static void entered(void *context, struct call_times_call *call, const struct call_times_call *outer)
{
    struct log *log = context;
    ck_assert_uint_eq(call->number, log->entered++);
    ck_assert(!outer || outer->slot > call->slot);
    ck_assert_uint_eq(call->depth, outer ? outer->depth + 1 : 0);
    call->own = ~call->number;
}

static void left(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    struct log *log = context;
    ck_assert_uint_eq(call->own, ~call->number);
    ck_assert_uint_le(call->callees_ns, call->end_ns - call->begin_ns);
    log->left++;
    if (log->how) {
        log->how[call->number] = (uint8_t)call->how;
        return;
    }
    const size_t room = sizeof log->text - log->length;
    const int length =
        snprintf(log->text + log->length, room, "%s%c%s%c %s %u/%u", log->length ? ", " : "", name_of(log, call),
                 outer ? "<" : "", outer ? name_of(log, outer) : '-', call_times_how_name(call->how),
                 (unsigned)(call->end_ns - call->begin_ns), (unsigned)call->callees_ns);
    ck_assert_int_lt(length, (int)room);
    log->length += (size_t)length;
}

static struct call_times_account walk(const struct trace *trace, struct log *log)
{
    struct call_times_account account;
    struct base_error error = {0};
    const struct call_times_visitor visitor = {.enter = entered, .leave = left, .context = log};
    ck_assert_uint_eq(trace->calls_count, 1);
    log->calls = trace->calls[0];
    ck_assert_int_eq(call_times_walk(trace->calls[0], &visitor, &account, &error), 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < CALL_TIMES_HOW_COUNT; i++)
        sum += account.how[i];
    ck_assert_uint_eq(sum, account.enters);
    ck_assert_uint_eq(account.how[CALL_TIMES_RETURNED] + account.exits_alone, account.exits);
    ck_assert_uint_eq(account.enters, trace->calls[0]->enters);
    ck_assert_uint_eq(account.exits, trace->calls[0]->exits);
    ck_assert_uint_eq(log->entered, account.enters);
    ck_assert_uint_eq(log->left, account.enters);
    return account;
}

static const struct {
    const char *told, *found;
    uint64_t exits_alone;
} stories[] = {
    {"a1 b2 /b2 /a1", "b<a returned 10/0, a- returned 30/10", 0},
    {"a1 a2 a3 /a3 /a2 /a1", "a<a returned 10/0, a<a returned 30/10, a- returned 50/30", 0},
    {"a1 b2 /b2 b2 /b2 /a1", "b<a returned 10/0, b<a returned 10/0, a- returned 50/20", 0},
    // By a jump: what was entered last returns for all.
    {"a1 b2 >c2 >d2 /d2 /a1", "b<a tail call 10/0, c<a tail call 10/0, d<a returned 10/0, a- returned 50/30", 0},
    // Also to itself, and by what had caught what it called.
    {"a1 b2 >b2 /b2 /a1", "b<a tail call 10/0, b<a returned 10/0, a- returned 40/20", 0},
    {"a1 b2 c3 >d2 /d2 /a1", "c<b unwound 10/0, b<a tail call 20/10, d<a returned 10/0, a- returned 50/30", 0},
    // What goes on further out has unwound the rest, which is seen then.
    {"a1 b2 c3 /a1", "c<b unwound 10/0, b<a unwound 20/10, a- returned 30/20", 0},
    {"a1 b2 c3 d4 c3 /c3 /b2 /a1",
     "d<c unwound 10/0, c<b unwound 20/10, c<b returned 10/0, b<a returned 50/30, a- returned 70/50", 0},
    // Another one is called where an exception has left one, or the same again.
    {"a1 b2 c2 /c2 /a1", "b<a unwound 10/0, c<a returned 10/0, a- returned 40/20", 0},
    {"a1 b2 b2 /b2 /a1", "b<a unwound 10/0, b<a returned 10/0, a- returned 40/20", 0},
    {"a1 b2 c3 d2 /d2 /a1", "c<b unwound 10/0, b<a unwound 20/10, d<a returned 10/0, a- returned 50/30", 0},
    // Between two open calls.
    {"a1 b5 c3 /c3 /a1", "b<a unwound 10/0, c<a returned 10/0, a- returned 40/20", 0},
    // A coroutine waits while its caller goes on, and is gone on with by another one, or in another thread.
    {"a1 b1000 /a1 c1 /b1000 /c1", "a- returned 20/0, b- returned 30/0, c- returned 20/0", 0},
    {"a1 b1000 c1001 /a1 | a1 /c1001 d1001 /d1001 /b1000 /a1",
     "a- returned 30/0, c<b returned 30/0, d<b returned 10/0, b- returned 70/40, a- returned 50/0", 0},
    {"a1 b2 c1000 /b2 d2 /c1000 e1000 /d2 f2 /e1000 /f2 /a1",
     "b<a returned 20/0, c- returned 30/0, d<a returned 30/0, e- returned 30/0, f<a returned 20/0, a- returned 110/70",
     0},
    // Its end, and a thread's.
    {"a1 b2", "b<a open 10/0, a- open 20/10", 0},
    {"a1 b2 .", "b<a unwound 0/0, a- unwound 10/0", 0},
    {"a1 b2 . | a1 /a1", "b<a unwound 0/0, a- unwound 10/0, a- returned 10/0", 0},
    // Losses. What has its exit has it.
    {"a1 b2 ! /a1", "b<a lost 10/0, a- returned 20/10", 0},
    {"a1 ! /b2 /a1", "a- returned 20/0", 1},
    {"a1 b2 ! c2 /c2 /a1", "b<a lost 10/0, c<a returned 10/0, a- returned 40/20", 0},
    {"a1 ! /b1", "a- lost 10/0", 1},
    {"a1 !", "a- lost 10/0", 0},
    {"/a1 b1 /b1", "b- returned 10/0", 1},
    // Two threads; each has its own.
    {"a1 | a1 | b2 | b2 | /b2 | /b2 | /a1 | /a1",
     "b<a returned 20/0, b<a returned 20/0, a- returned 60/20, a- returned 60/20", 0},
};

// Files of before say nothing of jumps. Called again by what caught it; nothing that is called returns to what jumped.
static const struct {
    const char *told, *found;
} guesses[] = {
    {"a1 b2 c2 d2 /d2 /a1", "b<a tail call 10/0, c<a tail call 10/0, d<a returned 10/0, a- returned 50/30"},
    {"a1 b2 b2 /b2 /a1", "b<a unwound 10/0, b<a returned 10/0, a- returned 40/20"},
    {"a1 b2 c3 d2 /d2 /a1", "c<b unwound 10/0, b<a unwound 20/10, d<a returned 10/0, a- returned 50/30"},
};

START_TEST(a_story_is_guessed)
{
    struct story story;
    struct log log = {0};
    const int fd = story_file();
    story_begin(&story, fd);
    const uint32_t thread = story_thread(&story, "one");
    story_tell(&story, &thread, 1, guesses[_i].told);
    story_end(&story);
    struct trace trace = story_read(fd);
    trace.calls[0]->told.flags = 0;
    walk(&trace, &log);
    ck_assert_str_eq(log.text, guesses[_i].found);
    trace_free(&trace);
    close(fd);
}
END_TEST

START_TEST(a_story_is_found)
{
    struct story story;
    struct log log = {0};
    const int fd = story_file();
    story_begin(&story, fd);
    const uint32_t threads[] = {story_thread(&story, "one"), story_thread(&story, "two")};
    story_tell(&story, threads, 2, stories[_i].told);
    story_end(&story);
    struct trace trace = story_read(fd);
    const struct call_times_account account = walk(&trace, &log);
    ck_assert_str_eq(log.text, stories[_i].found);
    ck_assert_uint_eq(account.exits_alone, stories[_i].exits_alone);
    ck_assert(trace.is_complete);
    trace_free(&trace);
    close(fd);
}
END_TEST

// A signal's handler has written its events behind the place of one whose time is later.
START_TEST(times_go_back_in_a_handler)
{
    struct story story;
    struct log log = {0};
    const int fd = story_file();
    story_begin(&story, fd);
    const uint32_t thread = story_thread(&story, "one");
    story_event(&story, thread, 'a', STORY_STACK, false, 100);
    story_event(&story, thread, 'h', STORY_STACK - 160, false, 60);
    story_event(&story, thread, 'h', STORY_STACK - 160, true, 80);
    story_event(&story, thread, 'a', STORY_STACK, true, 130);
    story.ns = 130;
    story_end(&story);
    struct trace trace = story_read(fd);
    walk(&trace, &log);
    ck_assert_str_eq(log.text, "h<a returned 0/0, a- returned 30/0");
    trace_free(&trace);
    close(fd);
}
END_TEST

// ---- at random

enum { FRAMES_MAX = 40, THREADS = 3, STACKS = 8, STEPS = 20000, CALLS_MAX = 2 * STEPS };

struct frame {
    uint64_t slot;
    char function;
    uint32_t number;
};

struct stack {
    uint64_t base;
    struct frame frames[FRAMES_MAX];
    unsigned count;
    bool is_taken;
};

struct program {
    struct story story;
    uint32_t threads[THREADS];
    struct stack stacks[STACKS]; // first each thread's own
    unsigned on[THREADS][STACKS], on_count[THREADS];
    uint8_t how[CALLS_MAX];
    uint32_t calls;
    bool has_coroutines;
};

static void tell(struct program *program, unsigned thread, const struct frame *frame, bool is_exit)
{
    story_event(&program->story, program->threads[thread], frame->function, frame->slot, is_exit,
                program->story.ns += (uint64_t)(1 + rand() % 40));
}

static void call(struct program *program, unsigned thread, struct stack *stack, uint64_t slot, char function,
                 bool is_jump)
{
    struct frame *frame = &stack->frames[stack->count++];
    *frame = (struct frame){.slot = slot, .function = function, .number = program->calls++};
    if (is_jump)
        story_jump(&program->story, program->threads[thread], function, slot,
                   program->story.ns += (uint64_t)(1 + rand() % 40));
    else
        tell(program, thread, frame, false);
}

static void end_last(struct program *program, struct stack *stack, enum call_times_how how)
{
    program->how[stack->frames[--stack->count].number] = (uint8_t)how;
}

static void return_last(struct program *program, unsigned thread, struct stack *stack)
{
    tell(program, thread, &stack->frames[stack->count - 1], true);
    end_last(program, stack, CALL_TIMES_RETURNED);
}

static void step(struct program *program)
{
    const unsigned thread = (unsigned)rand() % THREADS;
    unsigned *on = program->on[thread], *count = &program->on_count[thread];
    struct stack *stack = &program->stacks[on[*count - 1]];
    const unsigned what = (unsigned)rand() % 16;
    const char function = (char)('a' + rand() % 26);
    if (what < 7 && stack->count < FRAMES_MAX) {
        const uint64_t slot =
            (stack->count ? stack->frames[stack->count - 1].slot : stack->base) - 16 * (uint64_t)(1 + rand() % 9);
        call(program, thread, stack, slot, function, false);
    } else if (what < 12 && stack->count) {
        return_last(program, thread, stack);
    } else if (what == 12 && stack->count) {
        const uint64_t slot = stack->frames[stack->count - 1].slot;
        end_last(program, stack, CALL_TIMES_TAIL);
        call(program, thread, stack, slot, function, true);
    } else if (what == 13 && stack->count > 1) {
        for (unsigned kept = 1 + (unsigned)rand() % (stack->count - 1); stack->count > kept;)
            end_last(program, stack, CALL_TIMES_UNWOUND);
        return_last(program, thread, stack); // it goes on in what caught it
    } else if (what == 14 && program->has_coroutines) {
        const unsigned other = THREADS + (unsigned)rand() % (STACKS - THREADS);
        if (program->stacks[other].is_taken)
            return;
        program->stacks[other].is_taken = true;
        on[(*count)++] = other;
    } else if (what == 15 && *count > 1) {
        program->stacks[on[--*count]].is_taken = false;
    }
}

START_TEST(a_program_is_found)
{
    struct program *program = calloc(1, sizeof *program);
    const int fd = story_file();
    srand((unsigned)_i + 1);
    program->has_coroutines = _i % 2;
    story_begin(&program->story, fd);
    for (unsigned i = 0; i < THREADS; i++) {
        program->threads[i] = story_thread(&program->story, "thread");
        program->on[i][program->on_count[i]++] = i;
    }
    for (unsigned i = 0; i < STACKS; i++) // those of coroutines are side by side
        program->stacks[i].base = STORY_STACK - (i < THREADS ? i * UINT64_C(0x10000000) : 0x8000 * (uint64_t)i);
    for (unsigned i = 0; i < STEPS; i++)
        step(program);
    for (unsigned i = STACKS; i-- > 0;)
        while (program->stacks[i].count)
            return_last(program, i % THREADS, &program->stacks[i]);
    story_end(&program->story);

    struct trace trace = story_read(fd);
    struct log log = {.how = calloc(CALLS_MAX, 1)};
    const struct call_times_account account = walk(&trace, &log);
    ck_assert_uint_eq(account.enters, program->calls);
    ck_assert_uint_eq(account.exits_alone, 0);
    // With stacks side by side that wait at any moment, what did not return may be seen otherwise, now and then.
    uint32_t others = 0;
    for (uint32_t i = 0; i < program->calls; i++) {
        const bool is_same = log.how[i] == program->how[i];
        others += !is_same;
        ck_assert_msg(is_same || (program->has_coroutines && log.how[i] != CALL_TIMES_RETURNED &&
                                  program->how[i] != CALL_TIMES_RETURNED),
                      "call %u: %s, found as %s", i, call_times_how_name(program->how[i]),
                      call_times_how_name(log.how[i]));
    }
    ck_assert_uint_le(others, program->calls / 50);
    for (unsigned i = 0; i < CALL_TIMES_HOW_COUNT; i++)
        ck_assert(i == CALL_TIMES_OPEN || i == CALL_TIMES_LOST || account.how[i] > 100);
    trace_free(&trace);
    free(log.how);
    free(program);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call_times");
    TCase *tests = tcase_create("walk");
    tcase_set_timeout(tests, 60); // as the machine may have much else to do
    tcase_add_loop_test(tests, a_story_is_guessed, 0, (int)(sizeof guesses / sizeof *guesses));
    tcase_add_loop_test(tests, a_story_is_found, 0, (int)(sizeof stories / sizeof *stories));
    tcase_add_test(tests, times_go_back_in_a_handler);
    tcase_add_loop_test(tests, a_program_is_found, 0, 8);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
