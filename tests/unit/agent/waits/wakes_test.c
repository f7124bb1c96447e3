// SPDX-License-Identifier: Apache-2.0
// Wakes with several waiters, several wakers, or neither: what is told is right, and what cannot be known is not told.
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/locks.h"
#include "tests/unit/agent/waits/world.h"

enum { WAITERS = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static uint32_t tids[WAITERS], waker_tid, is_set, go;
static struct trace trace;

static uint64_t told(uint32_t tid, uint32_t key)
{
    const struct trace_sample *wait = world_sample(&trace, tid, QUT_SAMPLE_WAIT, true, 0);
    ck_assert_ptr_nonnull(wait);
    return world_extra(&trace, wait, key);
}

static void begin(uint32_t *tid)
{
    world_thread_begins();
    __atomic_store_n(tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
}

static void wait_for(const uint32_t *word)
{
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void *waits_for_condition(void *tid)
{
    pthread_mutex_lock(&mutex);
    begin(tid);
    while (!is_set)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *broadcasts(void *tid)
{
    begin(tid);
    pthread_mutex_lock(&mutex);
    is_set = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *waits_for_semaphore(void *tid)
{
    begin(tid);
    sem_wait(&semaphore);
    return NULL;
}

static void *posts(void *tid)
{
    begin(tid);
    wait_for(&go);
    sem_post(&semaphore);
    return NULL;
}

static void *waits_at_barrier(void *tid)
{
    begin(tid);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *ends(void *tid)
{
    begin(tid);
    wait_for(&go);
    return NULL;
}

static void *joins(void *thread)
{
    begin(&tids[0]);
    pthread_join(*(pthread_t *)thread, NULL);
    return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    ck_assert_int_eq(pthread_create(thread, NULL, function, argument), 0);
}

static void start_waiters(pthread_t *threads, size_t count, void *(*function)(void *))
{
    for (size_t i = 0; i < count; i++) {
        tids[i] = 0;
        start(&threads[i], function, &tids[i]);
        wait_for(&tids[i]);
        while (!agent_lock_has_waiters(function == waits_for_condition ? (void *)&condition
                                       : function == waits_at_barrier  ? (void *)&barrier
                                                                       : (void *)&semaphore))
            usleep(50);
        world_wait_until_asleep(tids[i]);
    }
}

static void join_all(pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(test_broadcast)
{
    pthread_t threads[WAITERS], waker;
    is_set = 0;
    world_open(AGENT_SYNC_LOCK, 1, 1, QUT_TRIGGER_NONE);
    start_waiters(threads, WAITERS, waits_for_condition);
    start(&waker, broadcasts, &waker_tid);
    join_all(threads, WAITERS);
    pthread_join(waker, NULL);
    world_close(&trace);
    const struct trace_sample *wake = world_sample(&trace, waker_tid, QUT_SAMPLE_WAKE, false, 0);
    ck_assert_ptr_nonnull(wake);
    ck_assert_str_eq(world_innermost(&trace, wake), "pthread_cond_broadcast");
    ck_assert_uint_eq(world_extra(&trace, wake, QUT_EXTRA_WAKEE_TID), 0); // they are many
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_uint_eq(told(tids[i], QUT_EXTRA_WAKER_TID), waker_tid);
        ck_assert_uint_eq(told(tids[i], QUT_EXTRA_FLOW), world_extra(&trace, wake, QUT_EXTRA_FLOW));
        ck_assert_uint_eq(told(tids[i], QUT_EXTRA_LOCK), (uintptr_t)&condition);
    }
    trace_free(&trace);
}
END_TEST

// Two waiters, two that post at about the same time: a waiter that tells its waker tells one of both, and where
// both posted before it looked, none.
START_TEST(test_two_posts)
{
    pthread_t threads[4];
    uint32_t posters[2] = {0, 0};
    sem_init(&semaphore, 0, 0);
    go = 0;
    world_open(AGENT_SYNC_LOCK, 1, 1, QUT_TRIGGER_NONE);
    start_waiters(threads, 2, waits_for_semaphore);
    start(&threads[2], posts, &posters[0]);
    start(&threads[3], posts, &posters[1]);
    wait_for(&posters[0]);
    wait_for(&posters[1]);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    join_all(threads, 4);
    world_close(&trace);
    for (int i = 0; i < 2; i++) {
        uint64_t waker = told(tids[i], QUT_EXTRA_WAKER_TID);
        ck_assert(waker == 0 || waker == posters[0] || waker == posters[1]);
    }
    trace_free(&trace);
}
END_TEST

// The table by itself: what is told of every order of releases.
START_TEST(test_words)
{
    static uint64_t lock;
    struct lock_wait wait;
    struct lock_wake wake;
    uint32_t me = agent_tid();
    world_open(AGENT_SYNC_LOCK, 1, 1, QUT_TRIGGER_NONE);
    ck_assert(!agent_lock_has_waiters(&lock));
    agent_lock_wait_begins(&wait, &lock);
    ck_assert(agent_lock_has_waiters(&lock));
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, 0); // no thread
    agent_lock_releases(&lock, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, me); // one
    ck_assert_uint_ne(wake.flow, 0);
    uint64_t flow = wake.flow;
    agent_lock_releases(&lock, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, me); // twice the same: which time is not known
    ck_assert_uint_eq(wake.flow, 0);
    agent_thread.tid = me + 1;
    agent_lock_releases(&lock, QUT_SAMPLE_WAKE, LOCK_RELEASED_SHARED);
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, 0); // another thread, too
    agent_lock_releases(&lock, QUT_SAMPLE_UNLOCK, LOCK_RELEASED_ALONE);
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, me + 1); // the thread that had it alone was the last
    ck_assert_uint_ne(wake.flow, 0);
    ck_assert_uint_ne(wake.flow, flow);
    agent_lock_releases_untold(&lock);
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, 0);
    agent_thread.tid = me;
    agent_lock_releases(&lock, QUT_SAMPLE_UNLOCK, LOCK_RELEASED_ALONE);
    agent_lock_wait_ends(&wait);
    ck_assert(!agent_lock_has_waiters(&lock));
    agent_lock_wait_begins(&wait, &lock); // what was before does not count
    agent_lock_wake_of(&wait, &wake);
    ck_assert_uint_eq(wake.waker_tid, 0);
    agent_lock_wait_ends(&wait);
    // More locks than there is room for next to each other: counted, and nothing else.
    static char many[200000][8];
    struct lock_wait *waits = calloc(200000, sizeof(*waits));
    uint64_t before = locks_untold(), without = 0;
    for (int i = 0; i < 200000; i++) {
        agent_lock_wait_begins(&waits[i], many[i]);
        without += !waits[i].place;
    }
    ck_assert_uint_ge(without, 190000);
    ck_assert_uint_eq(locks_untold() - before, without);
    for (int i = 0; i < 200000; i++)
        agent_lock_wait_ends(&waits[i]);
    for (int i = 0; i < LOCK_BUCKETS; i++)
        ck_assert_uint_eq(agent_lock_waiting[i], 0);
    free(waits);
    agent_lock_owned_by(&lock, 77);
    ck_assert_uint_eq(agent_lock_owner(&lock), 77);
    ck_assert_uint_eq(agent_lock_owner(many[0]), 0);
    agent_lock_owned_by(many[0], 0);
    ck_assert_uint_eq(agent_lock_owner(&lock), 77);
    agent_lock_owned_by(&lock, 0);
    ck_assert_uint_eq(agent_lock_owner(&lock), 0);
    world_close(NULL);
}
END_TEST

START_TEST(test_barrier)
{
    pthread_t threads[WAITERS];
    pthread_barrier_init(&barrier, NULL, WAITERS);
    world_open(AGENT_SYNC_LOCK, 1, 1, QUT_TRIGGER_NONE);
    start_waiters(threads, WAITERS - 1, waits_at_barrier);
    start(&threads[WAITERS - 1], waits_at_barrier, &waker_tid);
    join_all(threads, WAITERS);
    world_close(&trace);
    const struct trace_sample *wake = world_sample(&trace, waker_tid, QUT_SAMPLE_WAKE, false, 0);
    ck_assert_ptr_nonnull(wake);
    ck_assert_str_eq(world_innermost(&trace, wake), "pthread_barrier_wait");
    for (int i = 0; i < WAITERS - 1; i++) {
        ck_assert_uint_eq(told(tids[i], QUT_EXTRA_WAKER_TID), waker_tid);
        ck_assert_uint_eq(told(tids[i], QUT_EXTRA_FLOW), world_extra(&trace, wake, QUT_EXTRA_FLOW));
    }
    trace_free(&trace);
}
END_TEST

START_TEST(test_join)
{
    pthread_t ended, joiner;
    go = waker_tid = tids[0] = 0;
    world_open(AGENT_SYNC_LOCK, 1, 1, QUT_TRIGGER_NONE);
    start(&ended, ends, &waker_tid);
    wait_for(&waker_tid);
    start(&joiner, joins, &ended);
    wait_for(&tids[0]);
    while (!agent_lock_has_waiters((const void *)ended))
        usleep(50);
    world_wait_until_asleep(tids[0]);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    pthread_join(joiner, NULL);
    world_close(&trace);
    ck_assert_uint_eq(told(tids[0], QUT_EXTRA_WAKER_TID), waker_tid);
    const struct trace_sample *wake = world_sample(&trace, waker_tid, QUT_SAMPLE_WAKE, false, 0);
    ck_assert_ptr_nonnull(wake);
    ck_assert_uint_eq(told(tids[0], QUT_EXTRA_FLOW), world_extra(&trace, wake, QUT_EXTRA_FLOW));
    ck_assert_uint_eq(world_extra(&trace, wake, QUT_EXTRA_WAKEE_TID), tids[0]);
    trace_free(&trace);
}
END_TEST

// A long wait is one interval with a stack at both edges.
static void *reads_slowly(void *fds)
{
    char byte;
    begin(&tids[0]);
    ck_assert_int_eq(read(((int *)fds)[0], &byte, 1), 1);
    return NULL;
}

START_TEST(test_length)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    tids[0] = 0;
    world_open(AGENT_SYNC_IO, 1000000, 1, QUT_TRIGGER_NONE);
    pthread_t thread;
    start(&thread, reads_slowly, fds);
    wait_for(&tids[0]);
    world_wait_until_asleep(tids[0]);
    usleep(200000);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    pthread_join(thread, NULL);
    world_close(&trace);
    const struct trace_sample *read_end = world_sample(&trace, tids[0], QUT_SAMPLE_READ, true, 0);
    ck_assert_ptr_nonnull(read_end);
    uint64_t ns = world_extra(&trace, read_end, QUT_EXTRA_DURATION_NS);
    ck_assert_uint_ge(ns, 200000000);
    ck_assert_str_eq(world_innermost(&trace, read_end), "read");
    ck_assert(world_is_in(&trace, read_end, (const void *)reads_slowly, 4096));
    ck_assert_uint_eq(world_extra(&trace, read_end, QUT_EXTRA_FD), (uint64_t)fds[0]);
    ck_assert_uint_eq(world_extra(&trace, read_end, QUT_EXTRA_SIZE), 1);
    ck_assert_uint_eq(world_extra(&trace, read_end, QUT_EXTRA_RESULT), 1);
    ck_assert_uint_ne(world_extra(&trace, read_end, QUT_EXTRA_BEGIN_NODE), 0);
    ck_assert(read_end->flags & QUT_EVENT_OFF_CPU);
    const struct trace_thread *reader = world_thread(&trace, tids[0]);
    ck_assert_uint_eq(reader->totals[QUT_TOTAL_BLOCKED_CALLS], 1);
    ck_assert_uint_eq(reader->totals[QUT_TOTAL_BLOCKED_NS], ns);
    const struct trace_sample *begins = &trace.samples[reader->first_sample];
    ck_assert(begins->flags & QUT_EVENT_BEGINS);
    ck_assert_uint_lt(read_end->last_ns - begins->first_ns - ns + 2048, 4096); // times are stored in 1,024 ns
    ck_assert_str_eq(world_innermost(&trace, begins), "read");
    trace_free(&trace);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wakes");
    TCase *tests = tcase_create("wakes");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_broadcast);
    tcase_add_loop_test(tests, test_two_posts, 0, 20);
    tcase_add_test(tests, test_words);
    tcase_add_test(tests, test_barrier);
    tcase_add_test(tests, test_join);
    tcase_add_test(tests, test_length);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
