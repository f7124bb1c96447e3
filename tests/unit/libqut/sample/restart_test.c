// SPDX-License-Identifier: Apache-2.0
// A signal of the program's that ends a call ends it with ticks, too, and one after which calls go on does not: a tick
// that waits for the way back to user mode is delivered before it.
//
// Usage: restart_test [TICKS]: that many in each case (default: 6).
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/libqut/sample/subject.h"

enum {
    MS = 1000000,
    MOST = 1000000,
    NUMBER = SIGURG
}; // one that comes behind all that ticks may be
typedef unsigned long long ull;

static unsigned ticks_wanted = 6;
static int pipe_ends[2];
static volatile int is_over;
static volatile unsigned handled, ended, ended_otherwise;
static pid_t reader;

static void on_signal(int number)
{
    (void)number;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

// It uses its processor time for next to nothing else.
static void *read_again_and_again(void *trigger)
{
    char byte;
    subject_open(0, 0);
    int result = subject_sample(*(uint32_t *)trigger, 4 * MS);
    CHECK(result == 0, "cannot start: %d", result);
    __atomic_store_n(&reader, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
        if (read(pipe_ends[0], &byte, 1) < 0 && errno == EINTR)
            __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
        else
            __atomic_fetch_add(&ended_otherwise, 1, __ATOMIC_RELEASE);
    subject_check_balance("read");
    return NULL;
}

// It sleeps nowhere but in read.
static bool is_asleep(int status_fd)
{
    char text[512];
    ssize_t size = pread(status_fd, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    const char *behind = strrchr(text, ')');
    return behind && behind[1] == ' ' && behind[2] == 'S';
}

// Sends one signal to the sleeping thread; true: it was handled, and the read goes on, or ended, as its action says.
static bool interrupt(int status_fd, bool ends)
{
    while (!is_asleep(status_fd))
        sched_yield();
    unsigned handled_before = __atomic_load_n(&handled, __ATOMIC_ACQUIRE);
    unsigned ended_before = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
    syscall(SYS_tgkill, getpid(), reader, NUMBER);
    while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == handled_before)
        continue;
    // Behind its handler: what it sleeps in is the same read, or the next.
    while (!is_asleep(status_fd))
        sched_yield();
    return (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) != ended_before) == ends;
}

static void look(uint32_t trigger, bool ends)
{
    char path[64];
    pthread_t thread;
    unsigned wrong = 0, sent = 0;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = ends ? 0 : SA_RESTART};
    sigaction(NUMBER, &action, NULL);
    is_over = 0;
    reader = 0;
    ended_otherwise = 0;
    if (trigger == QUT_TRIGGER_BEST && !subject_has(QUT_TRIGGER_TASK_CLOCK))
        return;
    pthread_create(&thread, NULL, read_again_and_again, &trigger);
    while (!__atomic_load_n(&reader, __ATOMIC_ACQUIRE))
        sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)reader);
    int status_fd = open(path, O_RDONLY | O_CLOEXEC);
    for (; sent < MOST && subject_counts().taken < ticks_wanted; sent++)
        wrong += !interrupt(status_fd, ends);
    CHECK(wrong == 0, "trigger %u: %u of %u", trigger, wrong, sent);
    CHECK(ended_otherwise == 0, "%u", ended_otherwise);
    close(status_fd);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    CHECK(write(pipe_ends[1], "", 1) == 1, "cannot be woken");
    pthread_join(thread, NULL);
    subject_close();
}

static bool has_waiting_timers(void)
{
    if (!subject_has(QUT_TRIGGER_CPU_TIMER))
        return false;
    subject_open(0, 0);
    subject_sample(QUT_TRIGGER_CPU_TIMER, MS);
    bool wait = !qut_sampling_interrupts();
    subject_close();
    if (!wait)
        tap_skip("%s", "timers of processor time interrupt calls here");
    return wait;
}

TEST(a_call_ends_that_is_to_end)
{
    if (!has_waiting_timers())
        return;
    look(QUT_TRIGGER_BEST, true);
    look(QUT_TRIGGER_CPU_TIMER, true);
}

TEST(a_call_goes_on_that_is_to_go_on)
{
    if (!has_waiting_timers())
        return;
    look(QUT_TRIGGER_BEST, false);
    look(QUT_TRIGGER_CPU_TIMER, false);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        ticks_wanted = (unsigned)strtoul(argv[1], NULL, 10);
    if (pipe(pipe_ends) != 0)
        abort();
    RUN(a_call_ends_that_is_to_end);
    RUN(a_call_goes_on_that_is_to_go_on);
    return tap_finish();
}
