// SPDX-License-Identifier: Apache-2.0
// No system call of a watched program ends because it is watched: a child with a thread in each of many calls is
// stopped again and again.
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "libqut/arch/native.h"
#include "tests/support/run_suite.h"
#include "tests/unit/libqut/target/eintr_cases.h"

enum { CASES_MAX = 64, FRAMES_MAX = 64, ROUNDS = 200, INTERRUPT_ROUNDS = 5, SHORT_ROUNDS = 500, SHORT_MS = 1 };

static const struct qutc_provide_options provide = {.size = sizeof provide};

// What the child and the test share.
static struct shared {
    struct {
        _Atomic pid_t tid; // -1: not to be had here
        _Atomic unsigned returned;
        _Atomic int error; // errno of the last return, 0 where it was no error
        int prepared;
    } cases[CASES_MAX];
    _Atomic unsigned turns, interrupted; // of short sleeps
} * shared;
static pid_t child;

static void set_up(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
}

static void *sleep_in_call(void *argument)
{
    const struct eintr_case *mine = argument;
    size_t i = (size_t)(mine - eintr_cases);
    int prepared = shared->cases[i].prepared = mine->prepare();
    shared->cases[i].tid = prepared < 0 ? -1 : (pid_t)syscall(SYS_gettid);
    for (unsigned turn = 0; prepared >= 0 && turn < 100000; turn++) {
        long result = mine->sleep(prepared);
        shared->cases[i].error = result < 0 ? errno : 0;
        shared->cases[i].returned++;
    }
    return NULL;
}

static void *sleep_shortly(void *argument)
{
    (void)argument;
    int fd = epoll_create1(0);
    struct epoll_event event;
    for (;;) {
        if (epoll_wait(fd, &event, 1, SHORT_MS) < 0 && errno == EINTR)
            shared->interrupted++;
        shared->turns++;
    }
    return NULL;
}

static void start_thread(void *(*body)(void *), const void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, (void *)(uintptr_t)argument) != 0)
        _exit(3);
}

static pid_t start_child(bool short_sleeps)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (short_sleeps)
        start_thread(sleep_shortly, NULL);
    for (unsigned i = 0; !short_sleeps && i < eintr_case_count; i++)
        start_thread(sleep_in_call, &eintr_cases[i]);
    for (;;)
        pause();
}

static void end_child(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (unsigned i = 0; i < eintr_case_count; i++) {
        if (strncmp(eintr_cases[i].name, "sem", 3) == 0)
            semctl(shared->cases[i].prepared, 0, IPC_RMID);
        if (strncmp(eintr_cases[i].name, "msg", 3) == 0)
            msgctl(shared->cases[i].prepared, IPC_RMID, NULL);
    }
}

static struct qut_target *open_child(bool interrupt)
{
    struct qut_target_error error;
    const struct qut_target_options options = {.size = sizeof options,
                                               .compile = qutc_compile_for_qut,
                                               .compile_context = (void *)&provide,
                                               .interrupt = interrupt};
    struct qut_target *target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    return target;
}

static struct qut_target *watch_cases(bool interrupt)
{
    ck_assert_uint_le(eintr_case_count, CASES_MAX);
    child = start_child(false);
    for (unsigned i = 0; i < eintr_case_count; i++)
        while (shared->cases[i].tid == 0)
            usleep(1000);
    usleep(200000); // into the system calls
    for (unsigned i = 0; i < eintr_case_count; i++) {
        ck_assert_msg(shared->cases[i].returned == 0, "%s does not sleep: errno %d", eintr_cases[i].name,
                      shared->cases[i].error);
        if (shared->cases[i].tid < 0)
            printf("SKIP: %s: not to be had here\n", eintr_cases[i].name);
    }
    return open_child(interrupt);
}

static void stop(struct qut_target *target)
{
    struct qut_target_error error;
    ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
}

static const struct eintr_case *case_of(pid_t tid)
{
    for (unsigned i = 0; i < eintr_case_count; i++)
        if (shared->cases[i].tid == tid)
            return &eintr_cases[i];
    return NULL;
}

static void expect_walk(struct qut_target *target, size_t thread)
{
    struct qut_thread_info info;
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    qut_target_thread(target, thread, &info);
    const struct eintr_case *it = case_of(info.tid);
    if (!it)
        return;
    const char *wanted = it->asleep_in, *got = info.asleep_in;
    if (it->is_mended && !arch_native_arch.call_number_offset)
        return;
    ck_assert_msg(!wanted == !got && (!got || strncmp(got, wanted, strlen(wanted)) == 0),
                  "%s: left asleep in %s, wanted %s", it->name, got ? got : "nothing", wanted ? wanted : "nothing");
    size_t count = qut_target_walk(target, thread, frames, FRAMES_MAX, &end);
    ck_assert_msg(count > 0 && (got || end.reason == QUT_END_OUTERMOST), "%s: %zu frames, %s", it->name, count,
                  qut_end_reason_name(end.reason));
    ck_assert(!got || end.reason == QUT_END_OUTERMOST || end.reason == QUT_END_NO_REGISTER);
}

START_TEST(no_thread_sees_an_eintr)
{
    struct qut_target *target = watch_cases(false);
    for (unsigned round = 0; round < ROUNDS; round++) {
        stop(target);
        size_t count = qut_target_thread_count(target);
        for (size_t i = 0; round == 0 && i < count; i++)
            expect_walk(target, i);
        qut_target_resume(target);
    }
    qut_target_close(target);
    usleep(100000); // what was interrupted returns
    unsigned seen = 0;
    for (unsigned i = 0; i < eintr_case_count; i++) {
        seen += shared->cases[i].returned;
        if (shared->cases[i].returned)
            printf("%s returned %u times in %d stops, errno %d\n", eintr_cases[i].name, shared->cases[i].returned,
                   ROUNDS, shared->cases[i].error);
    }
    end_child();
    ck_assert_uint_eq(seen, 0);
}
END_TEST

// Why they are left asleep; and that the test above could fail.
START_TEST(with_interrupt_they_do)
{
    struct qut_target *target = watch_cases(true);
    for (unsigned round = 0; round < INTERRUPT_ROUNDS; round++) {
        stop(target);
        size_t count = qut_target_thread_count(target);
        for (size_t i = 0; i < count; i++) {
            struct qut_thread_info info;
            qut_target_thread(target, i, &info);
            ck_assert_msg(info.asleep_in == NULL, "thread %d is asleep in %s", (int)info.tid, info.asleep_in);
        }
        qut_target_resume(target);
        usleep(20000);
    }
    qut_target_close(target);
    end_child();
    for (unsigned i = 0; i < eintr_case_count; i++) {
        bool ends = eintr_cases[i].asleep_in || eintr_cases[i].is_mended;
        if (ends && shared->cases[i].tid > 0)
            printf("%-26s returned %u times in %d stops, errno %d\n", eintr_cases[i].name, shared->cases[i].returned,
                   INTERRUPT_ROUNDS, shared->cases[i].error);
        ck_assert_msg(ends || shared->cases[i].returned == 0, "%s returned", eintr_cases[i].name);
    }
    ck_assert_uint_gt(shared->cases[0].returned, 0);
    ck_assert_int_eq(shared->cases[0].error, EINTR);
}
END_TEST

// Falling asleep between the look and the stop is rare, and a thread that wakes is walked nevertheless.
START_TEST(short_sleeps)
{
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    unsigned walked = 0, left_asleep = 0;
    child = start_child(true);
    usleep(50000);
    struct qut_target *target = open_child(false);
    for (unsigned round = 0; round < SHORT_ROUNDS; round++) {
        stop(target);
        struct qut_thread_info info;
        ck_assert_uint_eq(qut_target_thread_count(target), 2);
        qut_target_thread(target, 1, &info);
        left_asleep += info.asleep_in != NULL;
        walked += qut_target_walk(target, 1, frames, FRAMES_MAX, &end) > 0;
        qut_target_resume(target);
    }
    qut_target_close(target);
    end_child();
    printf("sleeps of %d ms: %u turns, %d stops: left asleep in %u, walked in %u, EINTR in %u\n", SHORT_MS,
           shared->turns, SHORT_ROUNDS, left_asleep, walked, shared->interrupted);
    ck_assert_uint_ge(walked, SHORT_ROUNDS - SHORT_ROUNDS / 50);
    ck_assert_uint_le(shared->interrupted, SHORT_ROUNDS / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("eintr");
    TCase *tests = tcase_create("eintr");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, no_thread_sees_an_eintr);
    tcase_add_test(tests, with_interrupt_they_do);
    tcase_add_test(tests, short_sleeps);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
