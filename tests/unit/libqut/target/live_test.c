// SPDX-License-Identifier: Apache-2.0
// A live process: stopped, walked, let go, and none the worse for it. The children are forks of this program, so their
// functions lie where ours do.
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "base/clock_inline.h"
#include "tests/support/run_suite.h"

enum { FRAMES_MAX = 128, FUNCTION_BYTES = 512, SLEEPERS = 4, DEPTH = 10, SIGNALS = 5000, SLEEP_MS = 1600 };

static const struct qutc_provide_options provide = {.size = sizeof provide};
static const struct qut_target_options options = {
    .size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = (void *)&provide};

// What children and the test share.
static struct shared {
    _Atomic unsigned ready, counter, signals, sent;
    _Atomic bool go;
} * shared;
static int pipe_ends[2];
static pid_t watched;

static void set_up(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    ck_assert_int_eq(pipe(pipe_ends), 0);
}

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

__attribute__((noinline)) static int sleep_in_depth(int depth)
{
    char byte;
    int result;
    if (depth > 0) {
        result = sleep_in_depth(depth - 1);
    } else {
        shared->ready++;
        result = (int)read(pipe_ends[0], &byte, 1);
    }
    __asm__ volatile("" : "+r"(result)); // no tail call
    return result;
}

static void *sleeper(void *argument)
{
    shared->counter += sleep_in_depth((int)(intptr_t)argument) == 1;
    return NULL;
}

static pid_t start(int (*body)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    ck_assert_int_gt(child, 0);
    return child;
}

static void wait_ready(unsigned count)
{
    for (unsigned i = 0; i < 10000 && shared->ready < count; i++)
        pause_ms(1);
    ck_assert_uint_ge(shared->ready, count);
}

static int end_of(pid_t child)
{
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static char state_of(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return 0;
    close(fd);
    const char *behind = strrchr(text, ')');
    return behind ? behind[2] : 0;
}

static struct qut_target *open_target(pid_t pid)
{
    struct qut_target_error error = {""};
    struct qut_target *target = qut_target_process(pid, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    return target;
}

static void stop_target(struct qut_target *target)
{
    struct qut_target_error error = {""};
    ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
}

static int sleeping_threads(void)
{
    pthread_t threads[SLEEPERS];
    for (intptr_t i = 0; i < SLEEPERS; i++)
        pthread_create(&threads[i], NULL, sleeper, (void *)(DEPTH + i));
    for (int i = 0; i < SLEEPERS; i++)
        pthread_join(threads[i], NULL);
    return shared->counter == SLEEPERS ? 0 : 1;
}

// How deep sleep_in_depth has called itself: its frames but the innermost share one return address.
static unsigned depth_of(const struct qut_frame *frames, size_t count)
{
    unsigned most = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned equal = 0;
        for (size_t j = 0; j < count; j++)
            equal += frames[j].pc == frames[i].pc;
        if (equal > most && frames[i].pc - (uintptr_t)sleep_in_depth < FUNCTION_BYTES)
            most = equal;
    }
    return most;
}

START_TEST(threads_are_walked_and_go_on)
{
    pid_t child = start(sleeping_threads);
    wait_ready(SLEEPERS);
    pause_ms(20);
    struct qut_target *target = open_target(child);
    stop_target(target);
    ck_assert_int_eq(state_of(child), 't');
    ck_assert_uint_eq(qut_target_thread_count(target), SLEEPERS + 1);
    unsigned depths = 0;
    for (size_t i = 0; i < SLEEPERS + 1; i++) {
        struct qut_frame frames[FRAMES_MAX];
        struct qut_end end;
        struct qut_thread_info info;
        qut_target_thread(target, i, &info);
        ck_assert(info.name[0] && info.tid > 0);
        size_t count = qut_target_walk(target, i, frames, FRAMES_MAX, &end);
        ck_assert_uint_gt(count, 2);
        ck_assert_msg(end.reason == QUT_END_OUTERMOST, "%s", qut_end_reason_name(end.reason));
        unsigned depth = depth_of(frames, count);
        if (depth >= DEPTH && depth < DEPTH + SLEEPERS)
            depths |= 1u << (depth - DEPTH);
        // A shorter answer is the beginning of the longer one.
        struct qut_frame few[3];
        ck_assert_uint_eq(qut_target_walk(target, i, few, 3, &end), 3);
        ck_assert_int_eq(end.reason, QUT_END_LIMIT);
        ck_assert_mem_eq(few, frames, sizeof few);
        struct qut_module_info module;
        ck_assert(qut_target_module(target, frames[0].pc, &module));
        ck_assert(module.is_elf && module.file_path[0]);
    }
    ck_assert_uint_eq(depths, (1u << SLEEPERS) - 1);
    uintptr_t words[2] = {0};
    ck_assert_uint_eq(qut_target_read(target, (uintptr_t)&shared, words, sizeof *words), sizeof *words);
    ck_assert_uint_eq(words[0], (uintptr_t)shared);
    ck_assert_uint_eq(qut_target_read(target, 8, words, sizeof words), 0);
    qut_target_resume_thread(target, 0);
    qut_target_resume(target);
    ck_assert(state_of(child) != 't' && state_of(child) != 'T');
    stop_target(target); // and again
    ck_assert_uint_eq(qut_target_thread_count(target), SLEEPERS + 1);
    qut_target_close(target);
    ck_assert_int_eq(write(pipe_ends[1], "1234567890", SLEEPERS), SLEEPERS);
    ck_assert_int_eq(end_of(child), 0);
}
END_TEST

static int sleep_to_the_end(void)
{
    struct timespec time = {SLEEP_MS / 1000, SLEEP_MS % 1000 * 1000000};
    uint64_t begin_ns = base_clock_now_ns();
    shared->ready = 1;
    if (nanosleep(&time, NULL) != 0)
        return 1;
    return base_clock_now_ns() - begin_ns >= (uint64_t)SLEEP_MS * 1000000 ? 0 : 2;
}

START_TEST(a_sleep_is_not_cut_short)
{
    pid_t child = start(sleep_to_the_end);
    wait_ready(1);
    struct qut_target *target = open_target(child);
    // On a busy machine a stop takes its time; the last one must not meet a child that has ended.
    unsigned stops = 0;
    for (uint64_t begin_ns = base_clock_now_ns();
         stops < 20 && base_clock_now_ns() - begin_ns < SLEEP_MS / 4 * UINT64_C(1000000); stops++) {
        stop_target(target);
        qut_target_resume(target);
        pause_ms(5);
    }
    qut_target_close(target);
    ck_assert_int_eq(end_of(child), 0);
}
END_TEST

static void count_signal(int number)
{
    (void)number;
    shared->signals++;
}

static int count_signals(void)
{
    signal(SIGRTMIN, count_signal);
    shared->ready = 1;
    while (!shared->go)
        pause_ms(1);
    return 0;
}

// Signals arrive at any moment of a stop. RT ones are queued: each counts.
static int send_signals(void)
{
    while (shared->sent < SIGNALS)
        if (sigqueue(watched, SIGRTMIN, (union sigval){0}) == 0)
            shared->sent++;
    return 0;
}

START_TEST(no_signal_is_lost)
{
    watched = start(count_signals);
    wait_ready(1);
    struct qut_target *target = open_target(watched);
    pid_t sender = start(send_signals);
    while (shared->sent < SIGNALS) {
        stop_target(target);
        qut_target_resume(target);
    }
    qut_target_close(target);
    ck_assert_int_eq(end_of(sender), 0);
    for (int i = 0; i < 2000 && shared->signals < SIGNALS; i++)
        pause_ms(1);
    ck_assert_uint_eq(shared->signals, SIGNALS);
    shared->go = true;
    ck_assert_int_eq(end_of(watched), 0);
}
END_TEST

static int count_up(void)
{
    shared->ready++;
    while (!shared->go) {
        shared->counter++;
        pause_ms(1);
    }
    return 0;
}

static int stop_and_stay(void)
{
    struct qut_target_error error;
    struct qut_target *target = qut_target_process(watched, &options, &error);
    if (!target || qut_target_stop(target, &error) != 0)
        return 1;
    shared->ready++;
    while (!shared->go)
        pause();
    return 0;
}

START_TEST(who_watches_can_die)
{
    watched = start(count_up);
    wait_ready(1);
    pid_t watcher = start(stop_and_stay);
    wait_ready(2);
    ck_assert_int_eq(state_of(watched), 't');
    // Meanwhile another process cannot, and is told why.
    struct qut_target_error error = {""};
    struct qut_target *target = open_target(watched);
    ck_assert_int_ne(qut_target_stop(target, &error), 0);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "is being traced by %d", (int)watcher);
    ck_assert_msg(strstr(error.text, wanted) != NULL, "%s", error.text);
    qut_target_close(target);

    kill(watcher, SIGKILL);
    end_of(watcher);
    unsigned before = shared->counter;
    pause_ms(100);
    ck_assert_uint_gt(shared->counter, before);
    kill(watched, SIGKILL);
    end_of(watched);
}
END_TEST

START_TEST(stopped_before_stays_stopped)
{
    pid_t child = start(count_up);
    wait_ready(1);
    kill(child, SIGSTOP);
    for (int i = 0; i < 1000 && state_of(child) != 'T'; i++)
        pause_ms(1);
    struct qut_target *target = open_target(child);
    stop_target(target);
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    ck_assert_uint_gt(qut_target_walk(target, 0, frames, FRAMES_MAX, &end), 2);
    qut_target_close(target);
    pause_ms(50);
    ck_assert_int_eq(state_of(child), 'T');
    unsigned before = shared->counter;
    kill(child, SIGCONT);
    for (int i = 0; i < 1000 && shared->counter == before; i++)
        pause_ms(1);
    ck_assert_uint_gt(shared->counter, before);
    kill(child, SIGKILL);
    end_of(child);
}
END_TEST

static void *short_lived(void *argument)
{
    return argument;
}

static int make_threads(void)
{
    shared->ready = 1;
    while (!shared->go) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_lived, NULL) == 0)
            pthread_join(thread, NULL);
        shared->counter++;
    }
    return 0;
}

START_TEST(threads_that_come_and_go)
{
    pid_t child = start(make_threads);
    wait_ready(1);
    struct qut_target *target = open_target(child);
    for (int i = 0; i < 50; i++) {
        stop_target(target);
        unsigned before = shared->counter;
        size_t count = qut_target_thread_count(target);
        for (size_t t = 0; t < count; t++) {
            struct qut_frame frames[FRAMES_MAX];
            struct qut_end end;
            ck_assert_uint_gt(qut_target_walk(target, t, frames, FRAMES_MAX, &end), 0);
        }
        ck_assert_uint_eq(shared->counter, before);
        qut_target_resume(target);
    }
    qut_target_close(target);
    kill(child, SIGKILL);
    end_of(child);
}
END_TEST

START_TEST(sleepers_are_walked_without_a_stop)
{
    pid_t child = start(sleeping_threads);
    wait_ready(SLEEPERS);
    pause_ms(50);
    struct qut_target *target = open_target(child);
    size_t count = qut_target_thread_count(target);
    ck_assert_uint_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        struct qut_frame frames[FRAMES_MAX];
        struct qut_end end;
        struct qut_thread_info info;
        qut_target_thread(target, i, &info);
        size_t walked = qut_target_walk(target, i, frames, FRAMES_MAX, &end);
        ck_assert_uint_gt(walked, 1); // the system call and its caller, at least
        // Code with a frame pointer whose value is not known ends the walk.
        if (info.tid != child && end.reason != QUT_END_NO_REGISTER)
            ck_assert_uint_ge(depth_of(frames, walked), DEPTH);
    }
    qut_target_close(target);
    kill(child, SIGKILL);
    end_of(child);
}
END_TEST

static int at_once(void)
{
    return 0;
}

static void expect_refusal(pid_t pid, const char *why)
{
    struct qut_target_error error = {""};
    ck_assert_ptr_null(qut_target_process(pid, &options, &error));
    ck_assert_msg(strstr(error.text, why) != NULL, "%s", error.text);
}

START_TEST(refusals_say_why)
{
    pid_t gone = start(at_once);
    end_of(gone);
    expect_refusal(gone, "no such process");
    expect_refusal(getpid(), "itself");
    if (access("/proc/2/exe", F_OK) != 0 && errno == ENOENT && access("/proc/2/status", F_OK) == 0)
        expect_refusal(2, "kernel thread");
    pid_t child = start(sleeping_threads);
    wait_ready(SLEEPERS);
    struct qut_target *target = open_target(child);
    stop_target(target);
    struct qut_thread_info last;
    qut_target_thread(target, qut_target_thread_count(target) - 1, &last);
    qut_target_close(target);
    target = open_target(last.tid); // a thread stands for its process
    kill(child, SIGKILL);
    end_of(child);
    ck_assert_int_ne(qut_target_stop(target, NULL), 0);
    qut_target_close(target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live");
    TCase *tests = tcase_create("live");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, threads_are_walked_and_go_on);
    tcase_add_test(tests, a_sleep_is_not_cut_short);
    tcase_add_test(tests, no_signal_is_lost);
    tcase_add_test(tests, who_watches_can_die);
    tcase_add_test(tests, stopped_before_stays_stopped);
    tcase_add_test(tests, threads_that_come_and_go);
    tcase_add_test(tests, sleepers_are_walked_without_a_stop);
    tcase_add_test(tests, refusals_say_why);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
