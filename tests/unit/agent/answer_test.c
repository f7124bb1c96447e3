// SPDX-License-Identifier: Apache-2.0
// A process is recorded however long the recorder takes to answer it, and whatever interrupts it meanwhile.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/sample.h>

#include "tests/support/run_suite.h"
#include "tests/unit/agent/listener.h"

static char state_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *behind_name = strrchr(text, ')');
    ck_assert_ptr_nonnull(behind_name);
    return behind_name[2];
}

static void wait_until(pid_t pid, char state)
{
    for (int i = 0; i < 10000 && state_of(pid) != state; i++)
        usleep(1000);
    ck_assert_int_eq(state_of(pid), state);
}

static void be_slow(pid_t pid)
{
    wait_until(pid, 'S');
    usleep(50000); // ticks would come meanwhile
}

static void stop_it(pid_t pid)
{
    wait_until(pid, 'S');
    kill(pid, SIGSTOP);
    wait_until(pid, 'T');
    kill(pid, SIGCONT);
    wait_until(pid, 'S');
}

// A process, and a child of it that burns.
static void run_with(uint32_t trigger, void (*before_answer)(pid_t))
{
    static const char *const arguments[] = {
        "sh", "-c", "(i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done; exit 3); echo $?", NULL};
    static struct listener_run run;
    struct agent_settings settings;
    listener_settings(&settings);
    settings.trigger = trigger;
    listener_before_answer = before_answer;
    listener_run(&settings, arguments, true, &run);
    listener_before_answer = NULL;
    ck_assert_str_eq(run.output, "3\n");
    ck_assert_uint_eq(run.process_count, 2);
    ck_assert_uint_eq(run.left_packets, 0); // no process gave up
    ck_assert_uint_eq(run.count_packets, 2);
    ck_assert_uint_eq(run.counts.eintr_seen, 0);
    if (run.processes[0].hello.trigger != QUT_TRIGGER_NONE && run.processes[0].hello.trigger_error == 0)
        ck_assert_uint_ge(run.counts.taken + run.counts.late, 10);
    listener_free(&run);
}

START_TEST(a_slow_answer_is_waited_for)
{
    run_with(QUT_TRIGGER_BEST, be_slow);
    run_with(QUT_TRIGGER_WALL, be_slow);
}
END_TEST

START_TEST(a_stop_meanwhile_changes_nothing)
{
    run_with(QUT_TRIGGER_BEST, stop_it);
    run_with(QUT_TRIGGER_WALL, stop_it);
}
END_TEST

// Whether it has ticks is what the kernel says of its handlers.
START_TEST(who_leaves_before_a_first_look_is_not_waited_for)
{
    static const char *const arguments[] = {
        "sh", "-c",
        "has_ticks() { while read -r key mask; do [ $key != SigCgt: ] || return $((!(0x$mask & 0x4000000))); done"
        " </proc/$$/status; }; unset LD_PRELOAD; if has_ticks; then echo on; fi; while has_ticks; do sleep 0.2; done;"
        " echo off",
        NULL};
    static struct listener_run run;
    struct agent_settings settings;
    listener_settings(&settings);
    settings.signal_number = SIGPROF;
    listener_leaves = true;
    listener_run(&settings, arguments, true, &run);
    listener_leaves = false;
    ck_assert_str_eq(run.output, "on\noff\n");
    ck_assert_uint_eq(run.process_count, 1);
    listener_free(&run);
}
END_TEST

int main(int argument_count, char **arguments)
{
    if (argument_count != 2)
        return 2;
    setenv("QUT_TEST_AGENT", arguments[1], 1);
    Suite *suite = suite_create("agent");
    TCase *cases = tcase_create("answer");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_slow_answer_is_waited_for);
    tcase_add_test(cases, a_stop_meanwhile_changes_nothing);
    tcase_add_test(cases, who_leaves_before_a_first_look_is_not_waited_for);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
