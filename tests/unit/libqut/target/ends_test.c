// SPDX-License-Identifier: Apache-2.0
// A child that ends while it is stopped and let go: how it ended is left to whoever began it. And one whose first
// thread ends alone.
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "libqut/os/process.h"
#include "libqut/target/live.h"
#include "tests/support/run_suite.h"

enum { CHILDREN = 100, STATUS = 7, STEP_US = 20 };

static const struct qutc_provide_options provide = {.size = sizeof provide};
static const struct qut_target_options options = {
    .size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = (void *)&provide};

// Each child lives a little longer than the one before it, so that its end meets another moment of a stop.
static pid_t start(unsigned number, int *ready)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char byte;
        close(ends[1]);
        if (read(ends[0], &byte, 1) != 1)
            _exit(1);
        for (unsigned i = 0; i < number; i++)
            usleep(STEP_US);
        _exit(STATUS);
    }
    close(ends[0]);
    *ready = ends[1];
    return child;
}

START_TEST(its_parent_is_told_how_it_ended)
{
    for (unsigned number = 0; number < CHILDREN; number++) {
        int go, status = 0;
        struct qut_target_error error = {""};
        pid_t child = start(number, &go);
        struct qut_target *target = qut_target_process(child, &options, &error);
        ck_assert_msg(target != NULL, "%s", error.text);
        ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text); // once at least
        qut_target_resume(target);
        ck_assert_int_eq(write(go, "g", 1), 1);
        close(go);
        while (qut_target_stop(target, &error) == 0)
            qut_target_resume(target);
        qut_target_close(target);
        ck_assert_msg(waitpid(child, &status, 0) == child, "child %u: somebody else was told", number);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == STATUS, "child %u: %x", number, (unsigned)status);
    }
}
END_TEST

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

// Of its two threads the first ends once there is something to read.
static pid_t start_two(int *ready)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pthread_t other;
        char byte;
        close(ends[1]);
        if (pthread_create(&other, NULL, wait_for_ever, NULL) != 0 || read(ends[0], &byte, 1) != 1)
            _exit(1);
        pthread_exit(NULL);
    }
    close(ends[0]);
    *ready = ends[1];
    return child;
}

// It was asked to stop, and ended before it did: nobody is told of that as long as the other one lives.
START_TEST(its_first_thread_ends_instead_of_stopping)
{
    int go, status;
    struct qut_target_error error = {""};
    pid_t child = start_two(&go);
    struct qut_target *target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    struct qut_target_thread thread = {.info = {.tid = child}, .traced = true};
    ck_assert_int_eq(os_trace_seize(child), 0);
    ck_assert_int_eq(write(go, "g", 1), 1);
    while (target_live_thread_state(target->source, child) != 'Z')
        usleep(STEP_US);
    target_live_await_all(target, &thread, 1);
    ck_assert_msg(!thread.traced && !thread.stopped, "it is waited for");
    thread.traced = true;
    target_live_resume_thread(target, &thread);
    ck_assert(!thread.traced);
    // What is left of it can be stopped as ever.
    ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
    qut_target_resume(target);
    qut_target_close(target);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(go);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ends");
    TCase *tests = tcase_create("child");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, its_parent_is_told_how_it_ended);
    tcase_add_test(tests, its_first_thread_ends_instead_of_stopping);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
