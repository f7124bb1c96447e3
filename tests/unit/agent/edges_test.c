// SPDX-License-Identifier: Apache-2.0
// Things that few programs do are the same with the agent, and ticks go on meanwhile.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/sample.h>

#include "tests/support/run_suite.h"
#include "tests/unit/agent/listener.h"

static struct listener_run with, without;
static const char *edges, *suspend;

static void run_both(const struct agent_settings *settings, const char *mode, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    const char *arguments[] = {edges, mode, text, NULL};
    listener_run(settings, arguments, true, &with);
    listener_run(NULL, arguments, false, &without);
    ck_assert_msg(strcmp(with.output, without.output) == 0, "with:\n%swithout:\n%s", with.output, without.output);
    ck_assert_int_eq(with.status, without.status);
    ck_assert_uint_gt(with.output_bytes, 0);
    ck_assert_uint_eq(with.malformed, 0);
    ck_assert_uint_ge(with.process_count, 1);
}

static void end_both(void)
{
    listener_free(&with);
    listener_free(&without);
}

static bool has_ticks(void)
{
    return with.processes[0].hello.trigger != QUT_TRIGGER_NONE && with.processes[0].hello.trigger_error == 0;
}

static size_t count_kind(uint32_t kind)
{
    struct trace trace;
    size_t count = 0;
    listener_trace(&with, 0, &trace);
    for (size_t i = 0; i < trace.sample_count; i++)
        count += trace.samples[i].kind == kind ? trace.samples[i].count : 0;
    trace_free(&trace);
    return count;
}

START_TEST(old_functions_set_signals)
{
    struct agent_settings settings;
    listener_settings(&settings);
    static const int numbers[][2] = {
        {SIGTRAP, 0}, {SIGTRAP, SIGTRAP}, {SIGSTKFLT, SIGSTKFLT}, {SIGPROF, SIGPROF}, {SIGUSR1, SIGSTKFLT}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        settings.signal_number = numbers[i][1];
        run_both(&settings, "old-signals", numbers[i][0]);
        end_both();
    }
}
END_TEST

static void block_all(int number, int signal_number)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.signal_number = signal_number;
    run_both(&settings, "masks", number);
    // 100 ms at 1 kHz in a handler. Those that wait for its end come as one.
    if (has_ticks())
        ck_assert_uint_ge(with.counts.taken + with.counts.late, 50);
    end_both();
    settings.follow = false;
    run_both(&settings, "masks", number);
    end_both();
}

START_TEST(handlers_that_block_all_are_ticked)
{
    block_all(SIGSTKFLT, SIGSTKFLT);
    block_all(SIGTRAP, 0);
}
END_TEST

START_TEST(a_timer_of_the_programs_sends_our_signal)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.signal_number = SIGPROF;
    run_both(&settings, "timer", SIGPROF);
    end_both();
}
END_TEST

START_TEST(users_change)
{
    struct agent_settings settings;
    listener_settings(&settings);
    run_both(&settings, "users", 0);
    end_both();
}
END_TEST

START_TEST(small_stacks_are_large_enough)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.sync_interval_ns = 1;
    settings.period_ns = 200000;
    run_both(&settings, "small-stacks", 0);
    end_both();
}
END_TEST

START_TEST(forks_do_not_wait_for_who_stayed_behind)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.follow = false;
    settings.signal_number = SIGSTKFLT;
    run_both(&settings, "fork-storm", SIGSTKFLT);
    end_both();
}
END_TEST

START_TEST(handlers_never_see_ours)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.follow = false;
    settings.signal_number = SIGSTKFLT;
    run_both(&settings, "interrupts", SIGSTKFLT);
    end_both();
}
END_TEST

START_TEST(a_cancelled_thread_goes_on_to_the_same_point)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.signal_number = SIGSTKFLT;
    run_both(&settings, "cancel", SIGSTKFLT);
    end_both();
}
END_TEST

START_TEST(ticks_go_on_when_exec_fails)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.signal_number = SIGSTKFLT;
    run_both(&settings, "exec-fails", SIGSTKFLT);
    if (has_ticks())
        ck_assert_uint_ge(with.counts.taken, 20);
    end_both();
}
END_TEST

START_TEST(calls_with_a_mask_deliver_what_it_lets_through)
{
    for (int is_watched = 0; is_watched < 2; is_watched++) {
        struct agent_settings settings;
        listener_settings(&settings);
        settings.trigger = QUT_TRIGGER_CPU_TIMER;
        settings.sync = is_watched ? settings.sync : 0;
        listener_run(&settings, (const char *[]){suspend, NULL}, true, &with);
        listener_run(NULL, (const char *[]){suspend, NULL}, false, &without);
        ck_assert_str_eq(with.output, without.output);
        ck_assert_uint_eq(with.malformed, 0);
        end_both();
    }
}
END_TEST

START_TEST(each_thread_and_library_is_told)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.sync_interval_ns = 3600 * UINT64_C(1000000000);
    run_both(&settings, "come-and-go", 0);
    ck_assert_uint_eq(count_kind(QUT_SAMPLE_THREAD_START), 10);
    ck_assert_uint_eq(count_kind(QUT_SAMPLE_THREAD_END), 10);
    ck_assert_uint_eq(count_kind(QUT_SAMPLE_LOAD), 20);
    end_both();
}
END_TEST

// In it a timer would end the process.
START_TEST(a_sandbox_stays_alive)
{
    struct agent_settings settings;
    listener_settings(&settings);
    run_both(&settings, "sandbox", 0);
    ck_assert_ptr_nonnull(strstr(with.output, "forbidden 0\nplayed\n"));
    if (has_ticks())
        ck_assert_uint_ge(with.counts.taken, 10);
    end_both();
}
END_TEST

START_TEST(a_quick_exit_tells_its_counts)
{
    struct agent_settings settings;
    listener_settings(&settings);
    for (int i = 0; i < 3; i++) {
        run_both(&settings, i == 2 ? "quick-exit" : "exit", i);
        if (has_ticks())
            ck_assert_uint_ge(with.counts.taken + with.counts.late, 20);
        end_both();
    }
}
END_TEST

int main(int argument_count, char **arguments)
{
    if (argument_count != 4)
        return 2;
    setenv("QUT_TEST_AGENT", arguments[1], 1);
    edges = arguments[2];
    suspend = arguments[3];
    Suite *suite = suite_create("agent");
    TCase *cases = tcase_create("edges");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, old_functions_set_signals);
    tcase_add_test(cases, handlers_that_block_all_are_ticked);
    tcase_add_test(cases, a_timer_of_the_programs_sends_our_signal);
    tcase_add_test(cases, users_change);
    tcase_add_test(cases, small_stacks_are_large_enough);
    tcase_add_test(cases, forks_do_not_wait_for_who_stayed_behind);
    tcase_add_test(cases, handlers_never_see_ours);
    tcase_add_test(cases, a_cancelled_thread_goes_on_to_the_same_point);
    tcase_add_test(cases, ticks_go_on_when_exec_fails);
    tcase_add_test(cases, calls_with_a_mask_deliver_what_it_lets_through);
    tcase_add_test(cases, each_thread_and_library_is_told);
    tcase_add_test(cases, a_sandbox_stays_alive);
    tcase_add_test(cases, a_quick_exit_tells_its_counts);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
