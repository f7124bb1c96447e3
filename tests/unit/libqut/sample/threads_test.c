// SPDX-License-Identifier: Apache-2.0
// Threads that come, go, are adopted, and fork, while sampling starts and stops. An argument: so many seconds of it.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/qut_trace.h"
#include "tests/unit/libqut/sample/subject.h"

enum { MS = 1000000 };
typedef unsigned long long ull;
static unsigned storm_ms = 1500;

// ---- adopted

enum { OTHERS = 3 };
static volatile int others_stop, others_begun;

static void *spin_until_told(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&others_begun, 1, __ATOMIC_ACQ_REL);
    while (!__atomic_load_n(&others_stop, __ATOMIC_ACQUIRE))
        subject_spin_ms(1);
    return NULL;
}

static void *sleep_until_told(void *unused)
{
    struct timespec rest = {0, 1 * MS};
    (void)unused;
    while (!__atomic_load_n(&others_stop, __ATOMIC_ACQUIRE))
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    return NULL;
}

static unsigned task_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

static void adopt_with(uint32_t trigger)
{
    pthread_t others[OTHERS], sleeper;
    if (task_count() != 1)
        SKIP("an emulator has threads of its own in this process");
    others_stop = others_begun = 0;
    for (int i = 0; i < OTHERS; i++)
        pthread_create(&others[i], NULL, spin_until_told, NULL);
    CHECK(subject_wait_for(&others_begun, OTHERS), "they did not begin");
    subject_open(0, 0);
    CHECK(subject_sample(trigger, 1 * MS) == 0, "cannot start");
    int count = qut_sampling_adopt_threads();
    CHECK(count == OTHERS, "%d adopted", count);
    CHECK(qut_sampling_adopt_threads() == 0, "again");
    pthread_create(&sleeper, NULL, sleep_until_told, NULL);
    count = qut_sampling_adopt_threads();
    CHECK(count == 1, "%d adopted", count);
    CHECK(subject_counts().threads == 2 + OTHERS, "%llu threads", (ull)subject_counts().threads);
    uint64_t begin_ms = subject_now_ms();
    struct timespec rest = {0, 10 * MS};
    while (subject_counts().taken < 100 && subject_now_ms() - begin_ms < 10000)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    CHECK(subject_counts().taken >= 100, "%llu ticks", (ull)subject_counts().taken);
    CHECK(subject_counts().strays == 0, "%llu strays", (ull)subject_counts().strays);
    subject_check_balance("adopted");
    __atomic_store_n(&others_stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(others[i], NULL);
    pthread_join(sleeper, NULL);
    CHECK(qut_sampling_adopt_threads() == 0, "after their end");
    CHECK(subject_counts().threads == 1, "%llu threads", (ull)subject_counts().threads);
    subject_check_balance("ended");
    subject_close();
}

TEST(threads_are_adopted_by_events)
{
    if (subject_has(QUT_TRIGGER_TASK_CLOCK))
        adopt_with(QUT_TRIGGER_TASK_CLOCK);
}

TEST(threads_are_adopted_by_timers)
{
    if (subject_has(QUT_TRIGGER_WALL))
        adopt_with(QUT_TRIGGER_WALL);
}

// ---- fork

static uint32_t best_trigger(void)
{
    subject_open(0, 0);
    subject_sample(QUT_TRIGGER_BEST, 0);
    uint32_t trigger = qut_sampling_trigger();
    subject_close();
    return trigger;
}

static int child_of(bool restarts)
{
    uint64_t taken = subject_counts().taken;
    CHECK(taken == 0, "it begins with %llu ticks", (ull)taken);
    if (restarts)
        CHECK(qut_sampling_after_fork() == 0, "it does not start");
    else
        CHECK(qut_sampling_thread_begin() == -EINVAL, "a thread begins without a trace");
    subject_spin_ms(100);
    taken = subject_counts().taken;
    CHECK(restarts ? taken >= 3 : taken == 0, "%llu ticks", (ull)taken);
    CHECK(subject_counts().strays == 0, "%llu strays", (ull)subject_counts().strays);
    subject_check_balance("child");
    int number = qut_sampling_signal();
    qut_sampling_stop();
    struct sigaction action;
    sigaction(number ? number : SIGSTKFLT, NULL, &action);
    CHECK(action.sa_handler == SIG_DFL, "the action is not what it was");
    return tap.failed_checks;
}

TEST(children_tick_when_they_want_to)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        int status = 0;
        subject_open(restarts ? QUT_TRACE_FOLLOW_FORK : 0, 0);
        if (subject_sample(QUT_TRIGGER_BEST, 4 * MS) != 0) {
            subject_close();
            SKIP("no trigger");
        }
        subject_spin_ms(20);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int failed = child_of(restarts);
            fflush(stdout);
            _exit(failed != 0);
        }
        uint64_t before = subject_counts().taken;
        subject_spin_ms(100);
        CHECK(subject_counts().taken > before, "its parent ticks no more");
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
        subject_check_balance("parent");
        subject_close();
    }
}

// ---- the end

enum { LATE_HITS = 10 };
static pthread_key_t late_key;

static void hit_late(void *rounds)
{
    for (int i = 0; i < LATE_HITS; i++)
        qut_sync_hit(QUT_TOTAL_FREES, 3);
    if ((uintptr_t)rounds > 1) // destructors of other keys have run before the next round
        pthread_setspecific(late_key, (void *)((uintptr_t)rounds - 1));
}

static void *end_late(void *unused)
{
    (void)unused;
    qut_sampling_thread_begin();
    pthread_setspecific(late_key, (void *)2);
    return NULL;
}

TEST(what_comes_behind_a_threads_end_is_counted)
{
    pthread_t thread;
    struct qut_trace_counters_now before, after;
    pthread_key_create(&late_key, hit_late);
    subject_open(0, 0);
    CHECK(subject_sample(QUT_TRIGGER_NONE, 0) == 0, "cannot start");
    qut_trace_get_counts(&before, sizeof before);
    pthread_create(&thread, NULL, end_late, NULL);
    pthread_join(thread, NULL);
    qut_trace_get_counts(&after, sizeof after);
    CHECK(after.totals[QUT_TOTAL_FREES] == 2 * LATE_HITS, "%llu", (ull)after.totals[QUT_TOTAL_FREES]);
    CHECK(after.totals[QUT_TOTAL_FREED_BYTES] == 6 * LATE_HITS, "%llu", (ull)after.totals[QUT_TOTAL_FREED_BYTES]);
    uint64_t throttled = after.throttled - before.throttled;
    CHECK(throttled >= 2 * LATE_HITS - 1, "%llu throttled", (ull)throttled);
    for (unsigned i = 0; i < sizeof after.lost / sizeof *after.lost; i++)
        CHECK(after.lost[i] == 0, "%llu lost of reason %u", (ull)after.lost[i], i);
    // There is one thread, and then the one that ended.
    struct qut_trace_header header;
    CHECK(pread(qut_trace_fd(), &header, sizeof header, 0) == sizeof header && header.thread_count == 2, "%u threads",
          header.thread_count);
    subject_check_balance("end");
    subject_close();
    pthread_key_delete(late_key);
}

// ---- storms

static volatile int storm_over;

static void *short_life(void *how)
{
    int begins = qut_sampling_thread_begin();
    qut_guard_begin();
    qut_guard_end();
    for (int i = 0; i < 200; i++) {
        struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE};
        if (qut_sync_hit(QUT_TOTAL_ALLOCATIONS, 1))
            qut_sync_take(&event);
    }
    subject_spin_ms(1);
    if ((uintptr_t)how % 3 == 0)
        qut_sampling_thread_end();
    return (void *)(intptr_t)begins;
}

static void *start_and_end(void *unused)
{
    enum { AT_ONCE = 4 };
    (void)unused;
    for (uintptr_t n = 0; !__atomic_load_n(&storm_over, __ATOMIC_ACQUIRE); n++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            pthread_create(&threads[i], NULL, short_life, (void *)(n + (unsigned)i));
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    return NULL;
}

static void *fork_now_and_then(void *unused)
{
    struct timespec rest = {0, 5 * MS};
    (void)unused;
    while (!__atomic_load_n(&storm_over, __ATOMIC_ACQUIRE)) {
        pid_t child = fork();
        if (child == 0) {
            subject_spin_ms(1);
            _exit(subject_counts().taken != 0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0)
            return (void *)1;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    }
    return NULL;
}

static void storm_with(uint32_t trigger)
{
    pthread_t starters[2], forker;
    void *failed = NULL;
    uint64_t ticks = 0, rounds = 0;
    storm_over = 0;
    subject_open(0, 0);
    for (int i = 0; i < 2; i++)
        pthread_create(&starters[i], NULL, start_and_end, NULL);
    pthread_create(&forker, NULL, fork_now_and_then, NULL);
    uint64_t begin_ms = subject_now_ms();
    for (; subject_now_ms() - begin_ms < storm_ms; rounds++) {
        struct qut_sampling_options options = {
            .size = sizeof options, .trigger = trigger, .period_ns = MS / 4, .sync_interval_ns = 1};
        int result = qut_sampling_start(&options);
        CHECK(result == 0, "start %llu: %d", (ull)rounds, result);
        subject_spin_ms(3);
        if (rounds % 2)
            qut_sampling_adopt_threads();
        subject_spin_ms(2);
        qut_sampling_stop();
        subject_check_balance("round"); // the others' hits may be under way
        ticks += subject_counts().taken;
        CHECK(subject_counts().strays == 0, "%llu strays", (ull)subject_counts().strays);
    }
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(starters[i], NULL);
    pthread_join(forker, &failed);
    CHECK(failed == NULL, "a child ticked, or died");
    CHECK(ticks > rounds, "%llu ticks in %llu rounds", (ull)ticks, (ull)rounds);
    subject_close();
}

TEST(storm_of_threads_with_events)
{
    if (subject_has(QUT_TRIGGER_TASK_CLOCK))
        storm_with(QUT_TRIGGER_TASK_CLOCK);
}

TEST(storm_of_threads_with_timers)
{
    // qemu delivers what it has queued when the signal is no longer handled; Linux throws it away.
    if (task_count() != 1)
        SKIP("an emulator does not throw pending signals away");
    if (subject_has(QUT_TRIGGER_WALL))
        storm_with(QUT_TRIGGER_WALL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        storm_ms = (unsigned)atoi(argv[1]) * 1000u;
    printf("# trigger %u\n", best_trigger());
    RUN(threads_are_adopted_by_events);
    RUN(threads_are_adopted_by_timers);
    RUN(children_tick_when_they_want_to);
    RUN(what_comes_behind_a_threads_end_is_counted);
    RUN(storm_of_threads_with_events);
    RUN(storm_of_threads_with_timers);
    return tap_finish();
}
