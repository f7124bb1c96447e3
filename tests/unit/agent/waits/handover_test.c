// SPDX-License-Identifier: Apache-2.0
// Who woke whom: each hand-over is made so that there is one right answer, and each has to be told.
#include <check.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/locks.h"
#include "tests/unit/agent/waits/world.h"

enum { ROUNDS = 1000, RELEASERS = 3, LEAST_NS = 1 };

static uint32_t rounds = ROUNDS;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphores[2];
static uint32_t turn; // of the round: the thread that sees its number acts
static uint32_t held; // the round whose lock is held
static uint32_t tids[RELEASERS + 1];

static void wait_for(uint32_t *word, uint32_t value)
{
    for (uint32_t seen; (seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value;)
        syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX);
}

// Two functions that let go, to be told apart in stacks: each is all of a section, whose bounds the linker tells.
__attribute__((noinline, section("even_text"))) static void release_even(void (*release)(void))
{
    release();
    __asm__ volatile("");
}

__attribute__((noinline, section("odd_text"))) static void release_odd(void (*release)(void))
{
    release();
    __asm__ volatile("" ::"r"(1));
}

extern const char __start_even_text[], __stop_even_text[], __start_odd_text[], __stop_odd_text[];

static bool is_in_even(const struct trace *trace, const struct trace_sample *sample)
{
    return world_is_in(trace, sample, __start_even_text, (size_t)(__stop_even_text - __start_even_text));
}

static bool is_in_odd(const struct trace *trace, const struct trace_sample *sample)
{
    return world_is_in(trace, sample, __start_odd_text, (size_t)(__stop_odd_text - __start_odd_text));
}

struct kind_of_lock {
    const void *lock;
    void (*take)(void);
    void (*release)(void);
    void (*wait)(void);
};
static const struct kind_of_lock *now;

static void take_mutex(void)
{
    pthread_mutex_lock(&mutex);
}
static void release_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}
static void take_to_write(void)
{
    pthread_rwlock_wrlock(&rwlock);
}
static void take_to_read(void)
{
    pthread_rwlock_rdlock(&rwlock);
}
static void release_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
}

static const struct kind_of_lock kinds[] = {
    {&mutex, take_mutex, release_mutex, take_mutex},
    {&rwlock, take_to_write, release_rwlock, take_to_write},
    {&rwlock, take_to_write, release_rwlock, take_to_read},
    {&rwlock, take_to_read, release_rwlock, take_to_write},
};

static void *releaser(void *argument)
{
    uint32_t self = (uint32_t)(uintptr_t)argument;
    tids[self] = (uint32_t)gettid();
    for (uint32_t i = self; i < rounds; i += RELEASERS) {
        wait_for(&turn, i);
        now->take();
        set(&held, i + 1);
        while (!agent_lock_has_waiters(now->lock))
            sched_yield();
        world_wait_until_asleep(tids[RELEASERS]);
        (i % 2 ? release_odd : release_even)(now->release);
    }
    return NULL;
}

static void *waiter(void *argument)
{
    (void)argument;
    tids[RELEASERS] = (uint32_t)gettid();
    for (uint32_t i = 0; i < rounds; i++) {
        wait_for(&held, i + 1);
        now->wait();
        now->release();
        set(&turn, i + 1);
    }
    return NULL;
}

START_TEST(test_lock)
{
    now = &kinds[_i];
    turn = held = 0;
    world_open(AGENT_SYNC_LOCK, LEAST_NS, 1, QUT_TRIGGER_NONE);
    pthread_t threads[RELEASERS + 1];
    for (uintptr_t i = 0; i <= RELEASERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i < RELEASERS ? releaser : waiter, (void *)i), 0);
    for (int i = 0; i <= RELEASERS; i++)
        pthread_join(threads[i], NULL);
    struct trace trace;
    world_close(&trace);

    uint32_t me = tids[RELEASERS];
    ck_assert_uint_eq(world_count(&trace, me, QUT_SAMPLE_LOCK, true), rounds);
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t who = tids[i % RELEASERS];
        const struct trace_sample *got = world_sample(&trace, me, QUT_SAMPLE_LOCK, true, i);
        ck_assert_uint_eq(world_extra(&trace, got, QUT_EXTRA_LOCK), (uintptr_t)now->lock);
        if (now->take != take_to_read)
            ck_assert_uint_eq(world_extra(&trace, got, QUT_EXTRA_OWNER_TID), who);
        ck_assert_uint_eq(world_extra(&trace, got, QUT_EXTRA_WAKER_TID), who);
        const struct trace_sample *gave = world_sample(&trace, who, QUT_SAMPLE_UNLOCK, false, i / RELEASERS);
        ck_assert_ptr_nonnull(gave);
        ck_assert_uint_ne(world_extra(&trace, got, QUT_EXTRA_FLOW), 0);
        ck_assert_uint_eq(world_extra(&trace, got, QUT_EXTRA_FLOW), world_extra(&trace, gave, QUT_EXTRA_FLOW));
        ck_assert_uint_eq(world_extra(&trace, gave, QUT_EXTRA_WAKEE_TID), me);
        ck_assert_int_eq(is_in_odd(&trace, gave), i % 2);
        ck_assert_int_eq(is_in_even(&trace, gave), 1 - i % 2);
        ck_assert(gave->first_ns <= got->last_ns);
    }
    trace_free(&trace);
}
END_TEST

// ---- ping-pong

static uint32_t whose; // 0 or 1, under the mutex

static void *player_by_condition(void *argument)
{
    uint32_t self = (uint32_t)(uintptr_t)argument;
    tids[self] = (uint32_t)gettid();
    for (uint32_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        while (whose != self)
            pthread_cond_wait(&condition, &mutex);
        whose = !self;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *player_by_semaphore(void *argument)
{
    uint32_t self = (uint32_t)(uintptr_t)argument;
    tids[self] = (uint32_t)gettid();
    for (uint32_t i = 0; i < rounds; i++) {
        sem_wait(&semaphores[self]);
        sem_post(&semaphores[!self]);
    }
    return NULL;
}

// Every wait that was told a waker was told the right one, with the flow of one wake of that; and nearly all are told:
// the others began when the wake was under way.
START_TEST(test_ping_pong)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sem_init(&semaphores[i], 0, i == 0), 0);
    whose = 0;
    world_open(AGENT_SYNC_LOCK, LEAST_NS, 1, QUT_TRIGGER_NONE);
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, _i ? player_by_semaphore : player_by_condition, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    struct trace trace;
    world_close(&trace);
    size_t waits = 0, told = 0;
    for (int i = 0; i < 2; i++) {
        size_t count = world_count(&trace, tids[i], QUT_SAMPLE_WAIT, true);
        size_t wakes = world_count(&trace, tids[!i], QUT_SAMPLE_WAKE, false), next = 0;
        for (size_t k = 0; k < count; k++) {
            const struct trace_sample *wait = world_sample(&trace, tids[i], QUT_SAMPLE_WAIT, true, k);
            waits++;
            uint64_t flow = world_extra(&trace, wait, QUT_EXTRA_FLOW);
            if (!world_extra(&trace, wait, QUT_EXTRA_WAKER_TID))
                continue;
            told++;
            ck_assert_uint_eq(world_extra(&trace, wait, QUT_EXTRA_WAKER_TID), tids[!i]);
            const struct trace_sample *wake = NULL;
            while (next < wakes) {
                wake = world_sample(&trace, tids[!i], QUT_SAMPLE_WAKE, false, next++);
                if (world_extra(&trace, wake, QUT_EXTRA_FLOW) == flow)
                    break;
                wake = NULL;
            }
            ck_assert_ptr_nonnull(wake); // in the order of its wakes
            ck_assert(wake->first_ns <= wait->last_ns);
        }
    }
    printf("%s: %zu waits, %zu told who woke them\n", _i ? "semaphores" : "conditions", waits, told);
    ck_assert_uint_gt(waits, rounds / 2);
    ck_assert_uint_ge(told * 100, waits * 99);
    trace_free(&trace);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (uint32_t)atoi(argv[1]);
    Suite *suite = suite_create("handover");
    TCase *tests = tcase_create("handover");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_lock, 0, (int)(sizeof(kinds) / sizeof(*kinds)));
    tcase_add_loop_test(tests, test_ping_pong, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
