// SPDX-License-Identifier: Apache-2.0
// Hooks that do not come back: the thread is cancelled in them, or a handler jumps out of them. The program sees what
// it would see without us, and the next hook works.
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/locks.h"
#include "tests/unit/agent/waits/world.h"

static int pipe_fds[2], sockets[2], listener, epoll_fd;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static pthread_t sleeper;

static void by_read(void)
{
    char byte;
    ck_assert_int_le(read(pipe_fds[0], &byte, 1), 0);
}
static void by_recv(void)
{
    char byte;
    recv(sockets[0], &byte, 1, 0);
}
static void by_accept(void)
{
    accept(listener, NULL, NULL);
}
static void by_poll(void)
{
    poll(&(struct pollfd){pipe_fds[0], POLLIN, 0}, 1, 100000);
}
static void by_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_fds[0], &set);
    select(pipe_fds[0] + 1, &set, NULL, NULL, NULL);
}
static void by_epoll(void)
{
    struct epoll_event event;
    epoll_wait(epoll_fd, &event, 1, -1);
}
static void by_nanosleep(void)
{
    nanosleep(&(struct timespec){100, 0}, NULL);
}
static void by_sleep(void)
{
    sleep(100);
}
static void by_pause(void)
{
    pause();
}
static void by_sigwait(void)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &number);
}
static void by_semaphore(void)
{
    sem_wait(&semaphore);
}
static void unlock(void *lock)
{
    pthread_mutex_unlock(lock);
}
static void by_condition(void)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
}
static void by_join(void)
{
    pthread_join(sleeper, NULL);
}
static void by_mutex(void)
{
    pthread_mutex_lock(&mutex);
}
static void by_rwlock(void)
{
    pthread_rwlock_rdlock(&rwlock);
}

static void (*const calls[])(void) = {by_read,      by_recv,      by_accept, by_poll,  by_select,
                                      by_epoll,     by_nanosleep, by_sleep,  by_pause, by_sigwait,
                                      by_semaphore, by_condition, by_join,   by_mutex, by_rwlock};
enum { CALLS = sizeof(calls) / sizeof(*calls), CANCELLABLE = 13, BY_CONDITION = 11 };

static void (*call)(void);
static uint32_t tid;
static struct agent_thread *state; // of the thread that waits

static uint32_t waiters(void)
{
    uint32_t count = 0;
    for (int i = 0; i < LOCK_BUCKETS; i++)
        count += __atomic_load_n(&agent_lock_waiting[i], __ATOMIC_RELAXED);
    return count;
}

// Inside a hook, and asleep.
static void wait_until_it_waits(void)
{
    while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE) || !__atomic_load_n(&state->inside, __ATOMIC_RELAXED))
        sched_yield();
    world_wait_until_asleep(tid);
}

static void begin(void)
{
    state = &agent_thread;
    world_thread_begins();
    __atomic_store_n(&tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
}

static void clean_up(void *argument)
{
    (void)argument;
    usleep(1000);
}

static void *is_cancelled(void *argument)
{
    begin();
    pthread_cleanup_push(clean_up, NULL);
    call();
    pthread_cleanup_pop(0);
    return argument;
}

static void *sleeps(void *argument)
{
    while (!__atomic_load_n((uint32_t *)argument, __ATOMIC_ACQUIRE))
        sched_yield();
    return NULL;
}

static uint32_t is_over;
static void set_up(void)
{
    tid = is_over = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    epoll_fd = epoll_create1(0);
    sem_init(&semaphore, 0, 0);
    pthread_create(&sleeper, NULL, sleeps, &is_over);
}

static void tear_down(bool joined)
{
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    if (!joined)
        pthread_join(sleeper, NULL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    close(sockets[0]);
    close(sockets[1]);
    close(listener);
    close(epoll_fd);
}

START_TEST(test_cancel)
{
    set_up();
    call = calls[_i];
    world_open(AGENT_SYNC_ALL, 1, 1, QUT_TRIGGER_NONE);
    pthread_t thread;
    pthread_create(&thread, NULL, is_cancelled, NULL);
    wait_until_it_waits();
    pthread_cancel(thread);
    void *value;
    pthread_join(thread, &value);
    ck_assert_ptr_eq(value, PTHREAD_CANCELED);
    ck_assert_uint_eq(waiters(), 0);
    if (_i == BY_CONDITION) { // and the mutex was let go by the cleanup
        ck_assert_int_eq(pthread_mutex_trylock(&mutex), 0);
        pthread_mutex_unlock(&mutex);
    }
    struct trace trace;
    world_close(&trace);
    // The call that was cancelled has its end, at the latest when its thread ended; and its beginning says which it
    // was.
    size_t ends = 0;
    for (uint32_t kind = 0; kind < QUT_SAMPLE_FAULT; kind++)
        ends += world_count(&trace, tid, kind, true);
    ck_assert_uint_ge(ends, 1);
    ck_assert_uint_le(ends, 2);
    const struct trace_thread *thread_of = world_thread(&trace, tid);
    for (size_t k = 0; k < thread_of->sample_count; k++)
        ck_assert_uint_eq(trace.samples[thread_of->first_sample + k].is_open, 0);
    trace_free(&trace);
    tear_down(false);
}
END_TEST

// ---- handlers

static sigjmp_buf out;
static void jump(int number)
{
    siglongjmp(out, number);
}

static void *jumps(void *argument)
{
    begin();
    for (volatile int i = 0; i < 3; i++) {
        if (!sigsetjmp(out, 1)) {
            __atomic_store_n(&tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
            call();
        }
        ck_assert_uint_eq(agent_thread.inside, 0);
        usleep(1);
    }
    return argument;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

START_TEST(test_jump)
{
    if (_i == BY_CONDITION)
        return; // its mutex and itself would be of no use afterwards
    set_up();
    handle(SIGUSR1, jump, 0);
    call = calls[_i];
    world_open(AGENT_SYNC_ALL, 1, 1, QUT_TRIGGER_NONE);
    if (_i >= CANCELLABLE) {
        pthread_mutex_lock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, jumps, NULL);
    for (int i = 0; i < 3; i++) {
        wait_until_it_waits();
        __atomic_store_n(&tid, 0, __ATOMIC_RELEASE);
        pthread_kill(thread, SIGUSR1);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(waiters(), 0);
    if (_i >= CANCELLABLE) {
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_unlock(&rwlock);
    }
    world_close(NULL);
    tear_down(false);
    pthread_mutex_init(&mutex, NULL);
}
END_TEST

// A handler, on the same stack or its own, that calls hooks while one is under way: they go straight through, and the
// one that it interrupted is still under way afterwards.
static uintptr_t seen_inside;
static void visit(int number)
{
    (void)number;
    usleep(1);
    sem_post(&semaphore);
    seen_inside = agent_thread.inside;
}

static void *is_visited(void *argument)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    begin();
    errno = 4711;
    sem_wait(&semaphore);
    ck_assert_int_eq(errno, 4711);
    ck_assert_uint_eq(agent_thread.inside, 0);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(stack.ss_sp);
    return argument;
}

START_TEST(test_visit)
{
    set_up();
    handle(SIGUSR1, visit, SA_RESTART | (_i ? SA_ONSTACK : 0));
    world_open(AGENT_SYNC_ALL, 1, 1, QUT_TRIGGER_NONE);
    pthread_t thread;
    pthread_create(&thread, NULL, is_visited, NULL);
    wait_until_it_waits();
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    ck_assert_uint_ne(seen_inside, 0);
    struct trace trace;
    world_close(&trace);
    const struct trace_sample *wait = world_sample(&trace, tid, QUT_SAMPLE_WAIT, true, 0);
    ck_assert_ptr_nonnull(wait);
    ck_assert_str_eq(world_innermost(&trace, wait), "sem_wait");
    ck_assert_uint_eq(world_extra(&trace, wait, QUT_EXTRA_WAKER_TID), 0); // it woke itself, in a handler: not told
    ck_assert_uint_eq(world_count(&trace, tid, QUT_SAMPLE_SLEEP, true), 0);
    trace_free(&trace);
    tear_down(false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("left");
    TCase *tests = tcase_create("left");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_cancel, 0, CANCELLABLE);
    tcase_add_loop_test(tests, test_jump, 0, CALLS);
    tcase_add_loop_test(tests, test_visit, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
