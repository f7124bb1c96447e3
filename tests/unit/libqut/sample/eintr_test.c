// SPDX-License-Identifier: Apache-2.0
// No call that waits returns EINTR because of a tick, with any trigger; and none of them returns early.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/libqut/sample/subject.h"

enum { MS = 1000000, WAIT_MS = 12, ROUNDS = 8 };
typedef unsigned long long ull;

static int pipe_ends[2], pair[2], listener, epoll;
static sem_t semaphore;

static bool prepare(void)
{
    struct timeval patience = {0, WAIT_MS * 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX}; // the kernel gives it a name
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    epoll = epoll_create1(0);
    sem_init(&semaphore, 0, 0);
    return pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
           bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(listener, 1) == 0 &&
           setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
}

// ---- the calls: what they return when their time is up. 0, or errno

static int call_nanosleep(void)
{
    struct timespec rest = {0, WAIT_MS * MS};
    return nanosleep(&rest, NULL) == 0 ? 0 : errno;
}

static int call_poll(void)
{
    struct pollfd wanted = {.fd = pipe_ends[0], .events = POLLIN};
    return poll(&wanted, 1, WAIT_MS) == 0 ? 0 : errno;
}

static int call_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, WAIT_MS) == 0 ? 0 : errno;
}

static int call_semaphore(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MS * MS;
    until.tv_sec += until.tv_nsec / (1000 * MS);
    until.tv_nsec %= 1000 * MS;
    return sem_timedwait(&semaphore, &until) != 0 && errno == ETIMEDOUT ? 0 : errno;
}

static int call_recv(void)
{
    char byte;
    return recv(pair[0], &byte, 1, 0) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : errno;
}

static int call_accept(void)
{
    return accept(listener, NULL, NULL) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : errno;
}

static void *write_later(void *unused)
{
    struct timespec rest = {0, WAIT_MS * MS};
    (void)unused;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    return write(pipe_ends[1], "", 1) == 1 ? NULL : &pipe_ends;
}

static int call_read(void)
{
    char byte;
    pthread_t writer;
    pthread_create(&writer, NULL, write_later, NULL);
    int result = read(pipe_ends[0], &byte, 1) == 1 ? 0 : errno;
    pthread_join(writer, NULL);
    return result;
}

static const struct {
    const char *name;
    int (*call)(void);
    bool has_no_least; // a socket's timeout counts the kernel's own ticks, of 10 ms where they are longest
} calls[] = {
    {"nanosleep", call_nanosleep, false},
    {"poll", call_poll, false},
    {"epoll_wait", call_epoll, false},
    {"sem_timedwait", call_semaphore, false},
    {"recv", call_recv, true},
    {"accept", call_accept, true},
    {"read", call_read, true},
};

enum census_kind {
    GUARDED,    // nothing is interrupted
    UNGUARDED,  // nor here
    INTERRUPTED // unguarded: shows that the census can fail, and that what is seen is counted
};

static void look_at_calls(uint32_t trigger, enum census_kind kind, unsigned *interrupted)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int round = 0; round < ROUNDS; round++) {
            subject_spin_ms(2);
            if (kind == GUARDED)
                qut_guard_begin();
            uint64_t begin_ms = subject_now_ms();
            int error = calls[i].call();
            uint64_t took_ms = subject_now_ms() - begin_ms;
            if (kind == GUARDED)
                qut_guard_end();
            *interrupted += error == EINTR;
            if (kind != INTERRUPTED) {
                CHECK(error == 0, "%s, trigger %u: %s", calls[i].name, trigger, strerror(error));
                CHECK(calls[i].has_no_least || took_ms + 2 >= WAIT_MS, "%s: %llu ms", calls[i].name, (ull)took_ms);
            }
        }
    }
}

// Busy before and after each call: a tick is always near.
static void census(uint32_t trigger, enum census_kind kind)
{
    struct qut_sampling_options options = {.size = sizeof options, .trigger = trigger, .period_ns = 1 * MS};
    subject_open(0, 0);
    int result = qut_sampling_start(&options);
    CHECK(result == 0, "cannot start: %d", result);
    unsigned interrupted = 0;
    look_at_calls(trigger, kind, &interrupted);
    struct qut_sampling_counters counts = subject_counts();
    CHECK(counts.taken >= 5, "only %llu ticks", (ull)counts.taken);
    if (kind != INTERRUPTED)
        CHECK(counts.eintr_seen == 0, "%llu", (ull)counts.eintr_seen);
    else
        CHECK(interrupted > 0 && counts.eintr_seen >= interrupted, "%u were interrupted, %llu were seen", interrupted,
              (ull)counts.eintr_seen);
    subject_check_balance("census");
    subject_close();
}

static bool subject_interrupts(uint32_t trigger)
{
    subject_open(0, 0);
    subject_sample(trigger, 0);
    bool interrupts = qut_sampling_interrupts();
    subject_close();
    return interrupts;
}

TEST(task_clock_interrupts_nothing)
{
    if (subject_has(QUT_TRIGGER_TASK_CLOCK))
        census(QUT_TRIGGER_TASK_CLOCK, UNGUARDED);
}

TEST(cpu_timer_interrupts_nothing)
{
    if (subject_has(QUT_TRIGGER_CPU_TIMER))
        census(QUT_TRIGGER_CPU_TIMER, subject_interrupts(QUT_TRIGGER_CPU_TIMER) ? GUARDED : UNGUARDED);
}

TEST(wall_interrupts_nothing_that_is_guarded)
{
    if (subject_has(QUT_TRIGGER_WALL))
        census(QUT_TRIGGER_WALL, GUARDED);
}

TEST(wall_interrupts_what_is_not_guarded)
{
    if (!subject_has(QUT_TRIGGER_WALL))
        return;
    CHECK(subject_interrupts(QUT_TRIGGER_WALL), "it says that it does not");
    census(QUT_TRIGGER_WALL, INTERRUPTED);
}

// ---- the guard itself

static void nap(void)
{
    struct timespec rest = {0, 30 * MS};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR)
        ;
}

// One run of the guards below: which share of the ticks that were due is lost, in percent.
static unsigned guards_lost_percent(void)
{
    sigset_t mask, pending;
    subject_open(0, 0);
    qut_guard_end(); // of one that began before
    struct qut_sampling_options options = {.size = sizeof options, .trigger = QUT_TRIGGER_WALL, .period_ns = 2 * MS};
    CHECK(qut_sampling_start(&options) == 0, "cannot start");
    qut_guard_end();
    qut_guard_begin();
    qut_guard_begin();
    uint64_t before = subject_counts().taken;
    nap();
    qut_guard_end();
    nap();
    CHECK(subject_counts().taken == before, "%llu ticks in a guard", (ull)(subject_counts().taken - before));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(!sigismember(&mask, qut_sampling_signal()), "blocked");
    sigpending(&pending);
    CHECK(!sigismember(&pending, qut_sampling_signal()), "pending");
    qut_guard_end();
    // On a busy machine a nap may see one tick where 15 are due: the others ran together, and are lost.
    for (int i = 0; i < 100 && subject_counts().taken <= before + 5; i++)
        nap();
    CHECK(subject_counts().taken > before + 5, "%llu ticks after it", (ull)(subject_counts().taken - before));
    struct qut_sampling_counters counts = subject_counts();
    subject_check_balance("guards");
    subject_close();
    return counts.due ? (unsigned)(100 * counts.lost / counts.due) : 0;
}

TEST(guards_nest_and_no_mask_changes)
{
    if (!subject_has(QUT_TRIGGER_WALL))
        return;
    // 60 of 90 ms are guarded: were they counted, two thirds would be lost in every run. A busy machine loses some in some runs.
    unsigned least_percent = 100;
    for (int i = 0; i < 10 && least_percent > 25; i++) {
        unsigned percent = guards_lost_percent();
        if (percent < least_percent)
            least_percent = percent;
    }
    CHECK(least_percent <= 25, "%u of 100 are lost in each run", least_percent);
}

// What a timer had left when it was stopped is what it goes on with: else one that is guarded often would never come.
TEST(short_guards_put_nothing_off)
{
    if (!subject_has(QUT_TRIGGER_WALL))
        return;
    subject_open(0, 0);
    struct qut_sampling_options options = {.size = sizeof options, .trigger = QUT_TRIGGER_WALL, .period_ns = 20 * MS};
    CHECK(qut_sampling_start(&options) == 0, "cannot start");
    for (int i = 0; i < 200; i++) {
        subject_spin_ms(1);
        qut_guard_begin();
        qut_guard_end();
    }
    // Ten periods at least.
    CHECK(subject_counts().taken >= 3, "%llu ticks", (ull)subject_counts().taken);
    subject_close();
}

int main(void)
{
    if (!prepare()) {
        printf("SKIP: no sockets: %s\n", strerror(errno));
        return 77;
    }
    RUN(task_clock_interrupts_nothing);
    RUN(cpu_timer_interrupts_nothing);
    RUN(wall_interrupts_nothing_that_is_guarded);
    RUN(wall_interrupts_what_is_not_guarded);
    RUN(guards_nest_and_no_mask_changes);
    RUN(short_guards_put_nothing_off);
    return tap_finish();
}
