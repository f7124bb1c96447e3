// SPDX-License-Identifier: Apache-2.0
// Threads in states that are rare to meet: the first one has ended, a process that is a zombie, one that is stopped
// already, threads that come and go. The children are forks of this program.
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "tests/support/run_suite.h"

enum { FRAMES_MAX = 64, LONG_MS = 1000000, ROUNDS = 100, MAKERS = 4 };

static const struct qutc_provide_options provide = {.size = sizeof provide};
static struct shared {
    _Atomic bool is_ready;
    _Atomic pid_t tid;
} * shared;
static pid_t child;

static void set_up(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
}

static void tear_down(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(shared, sizeof *shared);
}

static void start(void (*body)(void))
{
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    while (!shared->is_ready)
        usleep(1000);
}

// Of a thread, or of the child's first one: as /proc says it.
static void await_state(pid_t tid, char wanted)
{
    char path[64], text[512], state = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)child, (int)tid);
    while (state != wanted) {
        FILE *file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        const char *behind = strrchr(text, ')');
        state = behind && behind[1] ? behind[2] : 0;
        if (state != wanted)
            usleep(1000);
    }
}

static struct qut_target *open_child(struct qut_target_error *error)
{
    const struct qut_target_options options = {.size = sizeof options,
                                               .compile = qutc_compile_for_qut,
                                               .compile_context = (void *)(uintptr_t)&provide,
                                               .one_by_one = true};
    return qut_target_process(child, &options, error);
}

static struct qut_target *stop_child(void)
{
    struct qut_target_error error = {""};
    struct qut_target *target = open_child(&error);
    ck_assert_msg(target != NULL, "%s", error.text);
    ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
    return target;
}

static size_t walk(struct qut_target *target, pid_t tid, struct qut_end *end, const char **asleep_in)
{
    struct qut_frame frames[FRAMES_MAX];
    size_t found = 0;
    for (size_t i = 0; i < qut_target_thread_count(target); i++) {
        if (qut_target_tid(target, i, NULL) != tid)
            continue;
        found = qut_target_walk(target, i, frames, FRAMES_MAX, end);
        qut_target_tid(target, i, asleep_in);
        qut_target_resume_thread(target, i);
    }
    return found;
}

static void *sleep_on(void *unused)
{
    shared->tid = gettid();
    shared->is_ready = true;
    for (;;)
        pause();
    return unused;
}

static void end_the_first(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_on, NULL);
    pthread_exit(NULL);
}

START_TEST(the_first_thread_has_ended)
{
    start(end_the_first);
    await_state(child, 'Z');
    struct qut_target *target = stop_child();
    struct qut_end end;
    const char *asleep_in;
    ck_assert_uint_gt(walk(target, shared->tid, &end, &asleep_in), 2);
    ck_assert_str_eq(qut_end_reason_name(end.reason), qut_end_reason_name(QUT_END_OUTERMOST));
    qut_target_close(target);
}
END_TEST

static void just_end(void)
{
    shared->is_ready = true;
}

START_TEST(a_zombie_is_no_kernel_thread)
{
    struct qut_target_error error = {""};
    start(just_end);
    await_state(child, 'Z');
    ck_assert_ptr_null(open_child(&error));
    ck_assert_msg(strstr(error.text, "has ended") != NULL, "%s", error.text);
}
END_TEST

__attribute__((noinline)) static void wait_for_events(int ms)
{
    struct epoll_event event;
    int fd = epoll_create1(0);
    volatile char room[16] = {0};
    shared->tid = gettid();
    shared->is_ready = true;
    while (epoll_wait(fd, &event, 1, ms) <= 0)
        room[0]++;
}

static void wait_for_long(void)
{
    wait_for_events(LONG_MS);
}

// SIGSTOP has ended the call already: there is nothing left to disturb.
START_TEST(stopped_in_a_call)
{
    start(wait_for_long);
    await_state(child, 'S');
    kill(child, SIGSTOP);
    await_state(child, 'T');
    struct qut_target *target = stop_child();
    struct qut_end end;
    const char *asleep_in = "";
    ck_assert_uint_gt(walk(target, child, &end, &asleep_in), 2);
    ck_assert_ptr_null(asleep_in);
    ck_assert_str_eq(qut_end_reason_name(end.reason), qut_end_reason_name(QUT_END_OUTERMOST));
    qut_target_close(target);
    await_state(child, 'T');
}
END_TEST

static void *return_at_once(void *argument)
{
    return argument;
}

static void *make_threads(void *argument)
{
    for (;;) {
        pthread_t thread;
        shared->is_ready = true;
        if (pthread_create(&thread, NULL, return_at_once, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return argument;
}

static void make_many(void)
{
    pthread_t thread;
    for (int i = 1; i < MAKERS; i++)
        pthread_create(&thread, NULL, make_threads, NULL);
    make_threads(NULL);
}

// A thread that has just been made stands behind the call that made it, which no unwind information describes.
START_TEST(threads_that_are_born)
{
    start(make_many);
    struct qut_target_error error = {""};
    struct qut_target *target = open_child(&error);
    ck_assert_msg(target != NULL, "%s", error.text);
    unsigned walked = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
        for (size_t i = 0; i < qut_target_thread_count(target); i++) {
            struct qut_frame frames[FRAMES_MAX];
            struct qut_end end;
            size_t count = qut_target_walk(target, i, frames, FRAMES_MAX, &end);
            qut_target_resume_thread(target, i);
            walked += count > 0;
            ck_assert_msg(count == 0 || end.reason == QUT_END_OUTERMOST, "%zu frames, %s at 0x%llx", count,
                          qut_end_reason_name(end.reason), (unsigned long long)end.pc);
        }
        qut_target_resume(target);
    }
    qut_target_close(target);
    printf("%u walks of %d threads that make others\n", walked, MAKERS);
    ck_assert_uint_gt(walked, ROUNDS);
}
END_TEST

// Where it returns to is what the test says.
__attribute__((noinline)) static void return_to(uintptr_t where)
{
    volatile uintptr_t *frame = __builtin_frame_address(0);
    frame[1] = where;
    shared->tid = gettid();
    shared->is_ready = true;
    for (;;)
        pause();
}

static uintptr_t data_word;
static uintptr_t false_pcs[3]; // in data, on the stack, nowhere
static unsigned false_pc;

static void have_no_caller(void)
{
    return_to(false_pcs[false_pc]);
}

// A false caller is no frame, and the end says what it was.
START_TEST(no_caller_outside_of_code)
{
    uintptr_t on_stack;
    false_pcs[0] = (uintptr_t)&data_word;
    false_pcs[1] = (uintptr_t)&on_stack;
    false_pcs[2] = 0x16;
    false_pc = (unsigned)_i;
    start(have_no_caller);
    await_state(child, 'S');
    struct qut_target *target = stop_child();
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    size_t count = qut_target_walk(target, 0, frames, FRAMES_MAX, &end);
    ck_assert_uint_gt(count, 1);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_ne(frames[i].pc, false_pcs[_i]);
    ck_assert_str_eq(qut_end_reason_name(end.reason),
                     qut_end_reason_name(_i == 2 ? QUT_END_NO_MODULE : QUT_END_NOT_CODE));
    ck_assert_uint_eq(end.pc, false_pcs[_i]);
    qut_target_close(target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("states");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, the_first_thread_has_ended);
    tcase_add_test(tcase, a_zombie_is_no_kernel_thread);
    tcase_add_test(tcase, stopped_in_a_call);
    tcase_add_test(tcase, threads_that_are_born);
    tcase_add_loop_test(tcase, no_caller_outside_of_code, 0, 3);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
