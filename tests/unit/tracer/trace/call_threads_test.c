// SPDX-License-Identifier: Apache-2.0
// Threads that made calls are found among a trace's, as a look at each of them would find them; also among very many of
// one number, which a damaged file can have.
#include <check.h>
#include <stdlib.h>

#include "tests/support/run_suite.h"
#include "tracer/trace/raw_trace.h"

enum { PROCESSES = 3, NUMBERS = 5, THREADS_MAX = 60, TOLD = 40, VERY_MANY = 200000 };

static uint64_t state;

static uint32_t random_below(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static struct trace_process processes[PROCESSES];
static struct trace_thread threads[VERY_MANY];
static struct call_events calls;
static struct call_events *all_calls[] = {&calls};
static struct trace trace;

static void begin(size_t thread_count, size_t told_count)
{
    for (uint32_t i = 0; i < PROCESSES; i++)
        processes[i].pid = 100 + i;
    trace = (struct trace){.processes = processes,
                           .process_count = PROCESSES,
                           .threads = threads,
                           .thread_count = thread_count,
                           .calls = all_calls,
                           .calls_count = 1};
    calls.threads.items = calloc(told_count, sizeof *calls.threads.items);
    calls.threads.count = told_count;
    ck_assert_ptr_nonnull(calls.threads.items);
}

// In the order in which they began, as a trace has them; those of one number one after the other.
static void fill_threads(size_t count)
{
    uint64_t ended_ns[PROCESSES][NUMBERS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        const uint32_t process = random_below(PROCESSES), number = random_below(NUMBERS);
        uint64_t *ended = &ended_ns[process][number];
        threads[i] =
            (struct trace_thread){.tid = number, .process = process, .start_ns = *ended + 1 + random_below(20)};
        *ended = threads[i].end_ns = threads[i].start_ns + random_below(30);
    }
}

static uint32_t look_at_each(const struct call_events_thread *told)
{
    for (uint32_t i = 0; i < trace.thread_count; i++)
        if (threads[i].tid == told->tid && processes[threads[i].process].pid == calls.told.pid &&
            threads[i].start_ns <= told->end_ns && told->start_ns <= threads[i].end_ns)
            return i;
    return TRACE_NONE;
}

START_TEST(as_a_look_at_each_finds_them)
{
    unsigned found = 0, missing = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        state = seed;
        const size_t thread_count = random_below(THREADS_MAX + 1);
        begin(thread_count, TOLD);
        fill_threads(thread_count);
        calls.told.pid = 100 + random_below(PROCESSES + 1);
        for (size_t i = 0; i < TOLD; i++) {
            struct call_events_thread *told = &calls.threads.items[i];
            told->tid = random_below(NUMBERS + 1);
            told->start_ns = random_below(500);
            told->end_ns = told->start_ns + random_below(40);
        }
        ck_assert(trace_find_call_threads(&trace));
        for (size_t i = 0; i < TOLD; i++) {
            const struct call_events_thread *told = &calls.threads.items[i];
            ck_assert_uint_eq(told->thread, look_at_each(told));
            *(told->thread == TRACE_NONE ? &missing : &found) += 1;
        }
        free(calls.threads.items);
    }
    ck_assert_uint_gt(found, 1000);
    ck_assert_uint_gt(missing, 1000);
}
END_TEST

START_TEST(among_very_many_of_one_number)
{
    begin(VERY_MANY, VERY_MANY);
    calls.told.pid = 100;
    for (uint32_t i = 0; i < VERY_MANY; i++) {
        threads[i] = (struct trace_thread){.tid = 7, .start_ns = 10 * (uint64_t)i, .end_ns = 10 * (uint64_t)i + 5};
        calls.threads.items[i].tid = 7;
        calls.threads.items[i].start_ns = calls.threads.items[i].end_ns = 10 * (uint64_t)(VERY_MANY - 1 - i) + 2;
    }
    ck_assert(trace_find_call_threads(&trace));
    for (uint32_t i = 0; i < VERY_MANY; i++)
        ck_assert_uint_eq(calls.threads.items[i].thread, VERY_MANY - 1 - i);
    free(calls.threads.items);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads of calls");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, as_a_look_at_each_finds_them);
    tcase_add_test(tests, among_very_many_of_one_number);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
