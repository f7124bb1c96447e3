// SPDX-License-Identifier: Apache-2.0
// What the program sees: results, errno, times left, orders of checks. Each answer is what libc's own function gives,
// which is asked through dlsym in the same situation.
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/waits/world.h"

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
enum { MARK = 4711 };

// Twice, through the hook and straight: the same result and errno.
#define SAME(set_up, name, ...)                                                                                        \
    do {                                                                                                               \
        set_up;                                                                                                        \
        errno = MARK;                                                                                                  \
        long hooked = (long)name(__VA_ARGS__);                                                                         \
        int hooked_errno = errno;                                                                                      \
        set_up;                                                                                                        \
        errno = MARK;                                                                                                  \
        long real = (long)REAL(name)(__VA_ARGS__);                                                                     \
        int real_errno = errno;                                                                                        \
        ck_assert_msg(hooked == real && hooked_errno == real_errno, #name ": %ld/%d, libc: %ld/%d", hooked,            \
                      hooked_errno, real, real_errno);                                                                 \
    } while (0)

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static sem_t semaphore;

static void make_mutex(int type, int protocol, int robust)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void *takes(void *argument)
{
    ck_assert_int_eq(REAL(pthread_mutex_lock)(&mutex), 0);
    return argument;
}

static void make_taken(int type, int protocol, int robust)
{
    make_mutex(type, protocol, robust);
    pthread_t thread;
    pthread_create(&thread, NULL, takes, NULL);
    pthread_join(thread, NULL);
}

static struct timespec soon(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 2000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

START_TEST(test_mutexes)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                PTHREAD_MUTEX_ADAPTIVE_NP};
    struct timespec bad = {1, -1};
    for (int t = 0; t < 4; t++)
        for (int protocol = 0; protocol < 2; protocol++)
            for (int robust = 0; robust < 2; robust++) {
                int type = types[t];
                SAME(make_mutex(type, protocol, robust), pthread_mutex_lock, &mutex);
                SAME(make_mutex(type, protocol, robust), pthread_mutex_timedlock, &mutex, &bad);
                SAME(make_mutex(type, protocol, robust), pthread_mutex_clocklock, &mutex, CLOCK_BOOTTIME, &bad);
                SAME(make_mutex(type, protocol, robust), pthread_mutex_unlock, &mutex);
                SAME(make_taken(type, protocol, robust), pthread_mutex_unlock, &mutex);
                struct timespec until = soon();
                SAME(make_taken(type, protocol, robust), pthread_mutex_timedlock, &mutex, &until);
                SAME(make_taken(type, protocol, robust), pthread_mutex_timedlock, &mutex, &bad);
                if (robust) // its owner died
                    SAME(make_taken(type, protocol, robust), pthread_mutex_lock, &mutex);
                if (type == PTHREAD_MUTEX_NORMAL || type == PTHREAD_MUTEX_ADAPTIVE_NP)
                    continue;
                SAME((make_mutex(type, protocol, robust), REAL(pthread_mutex_lock)(&mutex)), pthread_mutex_lock,
                     &mutex);
                // As often as it was locked, and once more.
                make_mutex(type, protocol, robust);
                ck_assert_int_eq(pthread_mutex_lock(&mutex), 0);
                int again = pthread_mutex_lock(&mutex);
                ck_assert_int_eq(again, type == PTHREAD_MUTEX_RECURSIVE ? 0 : EDEADLK);
                ck_assert_int_eq(pthread_mutex_unlock(&mutex), 0);
                if (!again)
                    ck_assert_int_eq(pthread_mutex_unlock(&mutex), 0);
                ck_assert_int_eq(pthread_mutex_unlock(&mutex), EPERM);
            }
}
END_TEST

static void *takes_to_write(void *argument)
{
    REAL(pthread_rwlock_wrlock)(&rwlock);
    return argument;
}

static void make_rwlock(int state)
{
    pthread_rwlock_init(&rwlock, NULL);
    if (state == 1)
        REAL(pthread_rwlock_wrlock)(&rwlock);
    if (state == 2)
        REAL(pthread_rwlock_rdlock)(&rwlock);
    if (state == 3) {
        pthread_t thread;
        pthread_create(&thread, NULL, takes_to_write, NULL);
        pthread_join(thread, NULL);
    }
}

START_TEST(test_rwlocks)
{
    struct timespec bad = {1, -1}, until = soon();
    for (int state = 0; state < 4; state++) {
        SAME(make_rwlock(state), pthread_rwlock_timedrdlock, &rwlock, &until);
        SAME(make_rwlock(state), pthread_rwlock_timedwrlock, &rwlock, &until);
        SAME(make_rwlock(state), pthread_rwlock_timedrdlock, &rwlock, &bad);
        SAME(make_rwlock(state), pthread_rwlock_timedwrlock, &rwlock, &bad);
        SAME(make_rwlock(state), pthread_rwlock_clockwrlock, &rwlock, CLOCK_BOOTTIME, &until);
        SAME(make_rwlock(state), pthread_rwlock_clockrdlock, &rwlock, CLOCK_BOOTTIME, &until);
        if (state < 2)
            SAME(make_rwlock(state), pthread_rwlock_rdlock, &rwlock);
        if (state < 2)
            SAME(make_rwlock(state), pthread_rwlock_wrlock, &rwlock);
        if (state)
            SAME(make_rwlock(state), pthread_rwlock_unlock, &rwlock);
    }
}
END_TEST

START_TEST(test_semaphores)
{
    struct timespec bad = {1, -1}, until = soon();
    for (unsigned value = 0; value < 2; value++) {
        SAME(sem_init(&semaphore, 0, value), sem_timedwait, &semaphore, &until);
        SAME(sem_init(&semaphore, 0, value), sem_timedwait, &semaphore, &bad);
        SAME(sem_init(&semaphore, 0, value), sem_clockwait, &semaphore, CLOCK_BOOTTIME, &until);
        SAME(sem_init(&semaphore, 0, value), sem_post, &semaphore);
    }
    SAME(sem_init(&semaphore, 0, 1), sem_wait, &semaphore);
    SAME(sem_init(&semaphore, 0, SEM_VALUE_MAX), sem_post, &semaphore);
    pthread_barrier_t barrier;
    SAME(pthread_barrier_init(&barrier, NULL, 1), pthread_barrier_wait, &barrier);
    SAME((void)0, pthread_join, pthread_self(), NULL);
}
END_TEST

// A semaphore that can be had, and a read that need not wait, are points of cancellation all the same.
static void *waits_for_nothing(void *argument)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    __atomic_store_n((uint32_t *)argument, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n((uint32_t *)argument, __ATOMIC_ACQUIRE) != 2)
        sched_yield();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    sem_wait(&semaphore);
    return NULL;
}

START_TEST(test_cancelled_before)
{
    uint32_t step = 0;
    sem_init(&semaphore, 0, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, waits_for_nothing, &step);
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 1)
        sched_yield();
    pthread_cancel(thread);
    __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
    void *value;
    pthread_join(thread, &value);
    ck_assert_ptr_eq(value, PTHREAD_CANCELED);
    int left;
    sem_getvalue(&semaphore, &left);
    ck_assert_int_eq(left, 1);
}
END_TEST

static void interrupts(int number)
{
    (void)number;
}

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ns_of(now);
}

// What is left of a nap that began after `from`, whenever that was: with what has gone by, all of it or more.
static void check_left(struct timespec nap, struct timespec left, int64_t from_ns)
{
    ck_assert_int_ge(ns_of(left) + now_ns() - from_ns, ns_of(nap));
    ck_assert_int_le(ns_of(left), ns_of(nap) + 1000000); // the kernel's own slack is in it
}

// The program's own signals interrupt its calls as ever.
START_TEST(test_times)
{
    struct sigaction action = {.sa_handler = interrupts};
    sigaction(SIGALRM, &action, NULL);
    const struct timespec nap = {1000, 0};
    struct timespec left = {0, 0};
    // Again and again: the first one may come before the nap begins.
    const struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t from_ns = now_ns();
    errno = MARK;
    ck_assert_int_eq(nanosleep(&nap, &left), -1);
    ck_assert_int_eq(errno, EINTR);
    check_left(nap, left, from_ns);
    from_ns = now_ns();
    ck_assert_int_eq(clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, &left), EINTR);
    check_left(nap, left, from_ns);
    setitimer(ITIMER_REAL, &never, NULL);
    SAME((void)0, clock_nanosleep, 77, 0, &left, NULL);
    SAME((void)0, nanosleep, &(struct timespec){0, -1}, NULL);
    SAME((void)0, read, -1, &left, sizeof(left));
    SAME((void)0, waitpid, -1, NULL, 0);
    SAME((void)0, fcntl, 0, F_GETFD);
    SAME((void)0, fcntl, -1, F_SETLKW, NULL);
    SAME((void)0, fsync, -1);
    SAME((void)0, flock, -1, LOCK_EX);
    SAME((void)0, usleep, 1);
    SAME((void)0, sleep, 0);
}
END_TEST

static mtx_t c11;
START_TEST(test_c11)
{
    mtx_init(&c11, mtx_timed);
    ck_assert_int_eq(mtx_lock(&c11), thrd_success);
    struct timespec until = soon();
    ck_assert_int_eq(mtx_timedlock(&c11, &until), thrd_timedout);
    cnd_t condition;
    cnd_init(&condition);
    ck_assert_int_eq(cnd_timedwait(&condition, &c11, &until), thrd_timedout);
    ck_assert_int_eq(cnd_signal(&condition), thrd_success);
    ck_assert_int_eq(mtx_unlock(&c11), thrd_success);
    mtx_init(&c11, mtx_plain | mtx_recursive);
    ck_assert_int_eq(mtx_lock(&c11), thrd_success);
    ck_assert_int_eq(mtx_lock(&c11), thrd_success);
    ck_assert_int_eq(mtx_unlock(&c11), thrd_success);
    ck_assert_int_eq(mtx_unlock(&c11), thrd_success);
}
END_TEST

// What another process lets go is not told to be this one's doing.
START_TEST(test_shared)
{
    struct {
        sem_t asks, answers, ready;
    } *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(&shared->asks, 1, 0);
    sem_init(&shared->answers, 1, 0);
    pid_t child = fork();
    if (!child) {
        REAL(sem_wait)(&shared->asks);
        world_wait_until_asleep((uint32_t)getppid());
        REAL(sem_post)(&shared->answers);
        _exit(0);
    }
    sem_post(&shared->asks);
    ck_assert_int_eq(sem_wait(&shared->answers), 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    struct trace trace;
    world_close(&trace);
    const struct trace_sample *wait = world_sample(&trace, (uint32_t)gettid(), QUT_SAMPLE_WAIT, true, 0);
    ck_assert_ptr_nonnull(wait);
    ck_assert_str_eq(world_innermost(&trace, wait), "sem_wait");
    ck_assert_uint_eq(world_extra(&trace, wait, QUT_EXTRA_WAKER_TID), 0);
    trace_free(&trace);
    munmap(shared, 4096);
}
END_TEST

static void open_world(void)
{
    world_open(AGENT_SYNC_ALL, 1, 1, QUT_TRIGGER_NONE);
}
static void close_world(void)
{
    ck_assert_uint_eq(agent_thread.inside, 0);
    world_close(NULL);
}

int main(void)
{
    Suite *suite = suite_create("same");
    TCase *tests = tcase_create("same");
    tcase_add_checked_fixture(tests, open_world, close_world);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_mutexes);
    tcase_add_test(tests, test_rwlocks);
    tcase_add_test(tests, test_semaphores);
    tcase_add_test(tests, test_cancelled_before);
    tcase_add_test(tests, test_times);
    tcase_add_test(tests, test_c11);
    tcase_add_test(tests, test_shared);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
