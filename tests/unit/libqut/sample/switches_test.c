// SPDX-License-Identifier: Apache-2.0
// A thread ticks by a timer where that is fine enough, or while it switches often; else by perf's clock.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/libqut/sample/subject.h"

enum { MS = 1000000 };
typedef unsigned long long ull;

static int there[2], back[2];

static void *echo(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    return unused;
}

// Two switches or more for some microseconds of its processor time. False: a call failed.
static bool play(void)
{
    char byte = 0;
    return write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1;
}

// Of processor time. False: a call failed.
static bool play_ms(unsigned milliseconds)
{
    uint64_t begin_ns = subject_cpu_ns();
    while (subject_cpu_ns() - begin_ns < (uint64_t)milliseconds * MS)
        if (!play())
            return false;
    return true;
}

// Until the calling thread alone changed; echo's is ended.
static bool wait_until_by_timer(uint64_t count)
{
    for (int round = 0; round < 1000 && subject_counts().threads_by_timer != count; round++)
        if (count)
            play_ms(5);
        else
            subject_spin_ms(5);
    return subject_counts().threads_by_timer == count;
}

static int sample(uint32_t trigger, uint64_t period_ns)
{
    struct qut_sampling_options options = {
        .size = sizeof options, .trigger = trigger, .period_ns = period_ns, .flags = QUT_SAMPLING_GUARDED};
    return qut_sampling_start(&options);
}

static bool can_change(void)
{
    bool can = subject_has(QUT_TRIGGER_TASK_CLOCK) && subject_has(QUT_TRIGGER_CPU_TIMER);
    if (!can)
        return false;
    subject_open(0, 0);
    subject_sample(QUT_TRIGGER_CPU_TIMER, MS);
    can = !qut_sampling_interrupts();
    subject_close();
    if (!can)
        tap_skip("%s", "timers of processor time interrupt calls here");
    return can;
}

TEST(who_switches_often_ticks_by_a_timer_meanwhile)
{
    if (!can_change())
        return;
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_BEST, MS) == 0, "cannot start");
    CHECK(qut_sampling_trigger() == QUT_TRIGGER_TASK_CLOCK, "%u", qut_sampling_trigger());
    CHECK(wait_until_by_timer(0), "a thread that spins");
    CHECK(wait_until_by_timer(1), "%llu threads changed", (ull)subject_counts().threads_by_timer);
    uint64_t before = subject_counts().taken;
    uint64_t taken = 0, played_ms = 0;
    while (taken < 3 && played_ms < 600) { // on a busy machine it has little of the time
        CHECK(play_ms(60), "a call failed");
        played_ms += 60;
        taken = subject_counts().taken - before;
    }
    CHECK(taken >= 3 && taken < played_ms / 2, "%llu ticks in %llu ms: as of a timer?", (ull)taken, (ull)played_ms);
    subject_check_balance("switching");
    // On a busy machine it is made to switch.
    for (int attempt = 0; attempt < 20 && taken < 150; attempt++) {
        CHECK(wait_until_by_timer(0), "it does not change back");
        before = subject_counts().taken;
        subject_spin_ms(200);
        taken = subject_counts().taken - before;
    }
    CHECK(taken >= 150, "%llu ticks in 200 ms: as of perf's clock?", (ull)taken);
    CHECK(subject_counts().lost <= 20, "%llu lost", (ull)subject_counts().lost);
    subject_check_balance("spinning");
    subject_close();
    CHECK(subject_counts().threads_by_timer == 0, "after its end");
}

TEST(who_asked_for_one_trigger_keeps_it)
{
    if (!can_change())
        return;
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_TASK_CLOCK, MS) == 0, "cannot start");
    CHECK(play_ms(60), "a call failed");
    subject_spin_ms(40);
    CHECK(subject_counts().taken >= 8 && subject_counts().threads_by_timer == 0, "%llu ticks, %llu changed",
          (ull)subject_counts().taken, (ull)subject_counts().threads_by_timer);
    subject_check_balance("asked for");
    subject_close();
}

// A program that has not said that calls are guarded, and those with masks repeated.
TEST(who_does_not_guard_keeps_perfs_clock)
{
    if (!can_change())
        return;
    subject_open(0, 0);
    CHECK(subject_sample(QUT_TRIGGER_BEST, 20 * MS) == 0, "cannot start");
    CHECK(subject_counts().threads_by_timer == 0, "%llu", (ull)subject_counts().threads_by_timer);
    CHECK(play_ms(60), "a call failed");
    subject_spin_ms(100);
    CHECK(subject_counts().threads_by_timer == 0, "%llu", (ull)subject_counts().threads_by_timer);
    subject_close();
}

static bool is_even(void)
{
    struct qut_sampling_counters counts = subject_counts();
    return counts.late * 20 <= counts.late + counts.taken;
}

TEST(slow_ticks_keep_a_timer)
{
    if (!can_change())
        return;
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_BEST, 20 * MS) == 0, "cannot start");
    CHECK(subject_counts().threads_by_timer == 1, "%llu", (ull)subject_counts().threads_by_timer);
    subject_spin_ms(500);
    CHECK(subject_counts().threads_by_timer == 1 || !is_even(), "%llu", (ull)subject_counts().threads_by_timer);
    subject_check_balance("slow");
    subject_close();
}

// The kernel's tick meets one that shares its processor with others by chance.
TEST(a_timer_whose_ticks_come_together_is_given_up)
{
    enum { OTHERS = 3 };
    pid_t others[OTHERS];
    cpu_set_t before, one;
    if (!can_change() || sched_getaffinity(0, sizeof before, &before) != 0)
        return;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < OTHERS; i++)
        if ((others[i] = fork()) == 0)
            for (;;)
                subject_spin_ms(1);
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_BEST, 4 * MS) == 0, "cannot start");
    for (int i = 0; i < 40 && subject_counts().threads_by_timer == 1; i++)
        subject_spin_ms(50);
    CHECK(subject_counts().threads_by_timer == 0 || is_even(), "%llu late", (ull)subject_counts().late);
    subject_check_balance("shared");
    subject_close();
    for (int i = 0; i < OTHERS; i++)
        if (others[i] > 0 && kill(others[i], SIGKILL) == 0)
            waitpid(others[i], NULL, 0);
    sched_setaffinity(0, sizeof before, &before);
}

// Each timer takes one of the signals that may be pending.
TEST(who_can_have_no_timer_keeps_ticking)
{
    if (!can_change())
        return;
    struct rlimit before, none;
    CHECK(getrlimit(RLIMIT_SIGPENDING, &before) == 0, "no limit");
    none = (struct rlimit){0, before.rlim_max};
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_BEST, MS) == 0, "cannot start");
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0, "cannot be set");
    uint64_t before_playing = subject_counts().taken;
    while (subject_counts().taken < before_playing + 16 && play_ms(5))
        ;
    bool changed = subject_counts().threads_by_timer != 0;
    subject_spin_ms(20);
    uint64_t taken = subject_counts().taken;
    subject_spin_ms(100);
    taken = subject_counts().taken - taken;
    setrlimit(RLIMIT_SIGPENDING, &before);
    CHECK(!changed && taken >= 50 && subject_counts().threads_failed == 0, "%llu ticks in 100 ms, %llu without",
          (ull)taken, (ull)subject_counts().threads_failed);
    subject_check_balance("without timers");
    subject_close();
}

// Ended while it ticks by a timer: its place goes to another thread.
static void *switch_and_end(void *ended)
{
    CHECK(qut_sampling_thread_begin() == 0, "no ticks");
    *(bool *)ended = wait_until_by_timer(1);
    return NULL;
}

TEST(a_place_is_given_back_as_it_was)
{
    if (!can_change())
        return;
    subject_open(0, 0);
    CHECK(sample(QUT_TRIGGER_BEST, MS) == 0, "cannot start");
    for (int round = 0; round < 2; round++) {
        bool changed = false;
        pthread_t thread;
        pthread_create(&thread, NULL, switch_and_end, &changed);
        pthread_join(thread, NULL);
        CHECK(changed, "it did not change");
        CHECK(subject_counts().threads_by_timer == 0, "%llu", (ull)subject_counts().threads_by_timer);
    }
    subject_check_balance("ended");
    subject_close();
}

int main(void)
{
    pthread_t other;
    if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&other, NULL, echo, NULL) != 0)
        abort();
    RUN(who_switches_often_ticks_by_a_timer_meanwhile);
    RUN(who_asked_for_one_trigger_keeps_it);
    RUN(who_does_not_guard_keeps_perfs_clock);
    RUN(slow_ticks_keep_a_timer);
    RUN(a_timer_whose_ticks_come_together_is_given_up);
    RUN(who_can_have_no_timer_keeps_ticking);
    RUN(a_place_is_given_back_as_it_was);
    close(there[1]);
    pthread_join(other, NULL);
    return tap_finish();
}
