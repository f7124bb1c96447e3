// SPDX-License-Identifier: Apache-2.0
// A program to be sampled. Nothing in it knows of that.
//     attach_subject shares DEPTH     three quarters of its time in spin_three, one in spin_one, DEPTH frames deep
//     attach_subject gaps DEPTH       reads the clock without a pause; a line on standard input asks: "MEDIAN_NS COUNT"
//     attach_subject threads          threads that come and go as fast as they can, each a little work
//     attach_subject forks            children that come and go
//     attach_subject execs N          becomes itself N times, with some work in between
//     attach_subject locks            one holds a mutex for 20 ms at a time, another waits for it
//     attach_subject naps             works 1 ms, sleeps 3 ms
// Says "ready SPIN_THREE SPIN_ONE HOLD_LOCK", where these begin, when it has begun; ends with standard input.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))

enum { GAP_STEP_NS = 250, GAP_BUCKETS = 8000, GAP_LEAST_NS = 3000 };

static volatile uint64_t sink;
static uint32_t gap_counts[GAP_BUCKETS];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool input_is_there(int wait_ms)
{
    struct pollfd in = {0, POLLIN, 0};
    return poll(&in, 1, wait_ms) > 0;
}

#define SPIN(name)                                                                                                     \
    KEPT void name(unsigned turns);                                                                                    \
    KEPT void name(unsigned turns)                                                                                     \
    {                                                                                                                  \
        for (unsigned i = 0; i < turns; i++)                                                                           \
            sink = sink * 3 + i;                                                                                       \
    }
SPIN(spin_three)
SPIN(spin_one)

static void shares(void)
{
    for (unsigned i = 0;; i++) {
        spin_three(30000);
        spin_one(10000);
        if (i % 64 == 0 && input_is_there(0))
            return;
    }
}

static void tell_gaps(void)
{
    uint64_t count = 0, seen = 0;
    unsigned i;
    for (i = 0; i < GAP_BUCKETS; i++)
        count += gap_counts[i];
    for (i = 0; i < GAP_BUCKETS && seen * 2 < count; i++)
        seen += gap_counts[i];
    printf("%u %llu\n", i * GAP_STEP_NS, (unsigned long long)count);
    fflush(stdout);
    memset(gap_counts, 0, sizeof gap_counts);
}

static void gaps(void)
{
    char line[64];
    uint64_t last_ns = now_ns(), turns = 0;
    for (;;) {
        uint64_t time_ns = now_ns(), gap_ns = time_ns - last_ns;
        last_ns = time_ns;
        if (gap_ns > GAP_LEAST_NS)
            gap_counts[gap_ns / GAP_STEP_NS < GAP_BUCKETS ? gap_ns / GAP_STEP_NS : GAP_BUCKETS - 1]++;
        if (++turns % 65536 || !input_is_there(0))
            continue;
        if (!fgets(line, sizeof line, stdin))
            return;
        tell_gaps();
        last_ns = now_ns();
    }
}

static KEPT void go_down(unsigned left, void (*work)(void))
{
    volatile char room[64];
    room[0] = 1;
    if (left)
        go_down(left - 1, work);
    else
        work();
    sink += (uint64_t)room[0];
}

static void *short_life(void *unused)
{
    (void)unused;
    spin_one(20000);
    return NULL;
}

static void threads(void)
{
    while (!input_is_there(0)) {
        pthread_t all[8];
        for (int i = 0; i < 8; i++)
            if (pthread_create(&all[i], NULL, short_life, NULL) != 0)
                _exit(3);
        for (int i = 0; i < 8; i++)
            pthread_join(all[i], NULL);
    }
}

static void forks(void)
{
    while (!input_is_there(0)) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            spin_one(100000);
            _exit(42);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 42)
            _exit(4);
    }
}

static int execs(int argc, char **argv)
{
    char left[16];
    int count = argc > 2 ? atoi(argv[2]) : 0;
    clock_t end = clock() + CLOCKS_PER_SEC / 16; // of processor time
    while (clock() < end)
        spin_one(10000);
    if (count == 0)
        return 0;
    snprintf(left, sizeof left, "%d", count - 1);
    execl("/proc/self/exe", argv[0], argv[1], left, (char *)NULL);
    return 5;
}

KEPT void hold_lock(void);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

KEPT void hold_lock(void)
{
    pthread_mutex_lock(&mutex);
    uint64_t end_ns = now_ns() + 20000000;
    while (now_ns() < end_ns)
        spin_one(1000);
    pthread_mutex_unlock(&mutex);
    usleep(2000); // so that the other one gets it
}

static void *want_lock(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        usleep(1000);
    }
    return NULL;
}

static void locks(void)
{
    pthread_t other;
    if (pthread_create(&other, NULL, want_lock, NULL) != 0)
        _exit(3);
    while (!input_is_there(0))
        hold_lock();
}

static void naps(void)
{
    while (!input_is_there(0)) {
        uint64_t end_ns = now_ns() + 1000000;
        while (now_ns() < end_ns)
            spin_one(1000);
        const struct timespec nap = {0, 3000000};
        if (nanosleep(&nap, NULL) != 0)
            _exit(6);
    }
}

static void ready(void)
{
    printf("ready %p %p %p\n", (void *)(uintptr_t)spin_three, (void *)(uintptr_t)spin_one,
           (void *)(uintptr_t)hold_lock);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*work)(void);
    } works[] = {{"shares", shares}, {"gaps", gaps},   {"threads", threads},
                 {"forks", forks},   {"locks", locks}, {"naps", naps}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ready();
    if (argc > 1 && strcmp(argv[1], "execs") == 0)
        return execs(argc, argv);
    for (size_t i = 0; argc > 1 && i < sizeof works / sizeof *works; i++)
        if (strcmp(argv[1], works[i].name) == 0) {
            go_down(argc > 2 ? (unsigned)atoi(argv[2]) : 0, works[i].work);
            return 0;
        }
    return 2;
}
