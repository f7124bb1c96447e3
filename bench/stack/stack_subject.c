// SPDX-License-Identifier: Apache-2.0
// Many threads, deep, that wait for ever; and with "clock" one that reads the clock without a pause and so sees for how
// long it was stopped. Usage: stack_subject THREADS DEPTH [clock]. Says "ready". Each line on standard input asks for
// what was seen since the one before: "LARGEST_NS STOPPED_NS TOTAL_NS COUNT".
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline)) // and no tail call: something happens after each call

enum { STACK_BYTES = 256 * 1024 };
static const uint64_t gap_min_ns = 20000; // what counts as a gap: interrupts are shorter

struct gaps {
    uint64_t largest_ns; // by the clock
    uint64_t stopped_ns; // the largest, of what is left without the wait for a processor
    uint64_t total_ns;   // of all gaps, without the wait for a processor
    uint64_t count;
};

static int depth;
static atomic_int arrived;
static volatile int sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static struct gaps gaps;  // of the thread that reads the clock
static atomic_uint asked; // questions so far

static KEPT void wait_for_ever(void)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
    for (;;)
        pthread_cond_wait(&never, &mutex);
}

static void go_down(int left);

static KEPT void small_frame(int left)
{
    go_down(left);
    sink = left;
}

static KEPT void large_frame(int left)
{
    volatile char room[400];
    room[0] = (char)left;
    go_down(left);
    sink = room[0];
}

static KEPT void go_down(int left)
{
    if (left <= 0)
        wait_for_ever();
    else if (left % 3 == 0)
        large_frame(left - 2);
    else
        small_frame(left - 2);
    sink = left;
}

static void *wait_in_thread(void *argument)
{
    (void)argument;
    go_down(depth - 6); // clone3, start_thread, this; the three in which it waits
    return NULL;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// How long this thread was ready to run and had no processor, since it began.
static uint64_t waited_ns(int schedstat)
{
    char text[128] = "";
    ssize_t size = pread(schedstat, text, sizeof text - 1, 0);
    const char *second = size > 0 ? strchr(text, ' ') : NULL;
    return second ? strtoull(second, NULL, 10) : 0;
}

static void add_gap(uint64_t gap_ns, uint64_t waited)
{
    uint64_t stopped_ns = gap_ns > waited ? gap_ns - waited : 0;
    gaps.largest_ns = gap_ns > gaps.largest_ns ? gap_ns : gaps.largest_ns;
    gaps.stopped_ns = stopped_ns > gaps.stopped_ns ? stopped_ns : gaps.stopped_ns;
    gaps.total_ns += stopped_ns;
    gaps.count++;
}

static void *read_clock(void *argument)
{
    (void)argument;
    int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    uint64_t waited = waited_ns(schedstat);
    unsigned answered = 0;
    uint64_t last = now_ns();
    for (;;) {
        uint64_t now = now_ns();
        if (now - last > gap_min_ns) {
            uint64_t waited_now = waited_ns(schedstat);
            add_gap(now - last, waited_now - waited);
            waited = waited_now;
            now = now_ns();
        }
        if (atomic_load_explicit(&asked, memory_order_relaxed) != answered) {
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", gaps.largest_ns, gaps.stopped_ns, gaps.total_ns,
                   gaps.count);
            fflush(stdout);
            memset(&gaps, 0, sizeof gaps);
            waited = waited_ns(schedstat);
            answered++;
            now = now_ns();
        }
        last = now;
    }
    return NULL;
}

static bool start(void *(*function)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bool started = pthread_create(&thread, &attributes, function, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int count = atoi(argv[1]);
    depth = atoi(argv[2]);
    for (int i = 0; i < count; i++)
        if (!start(wait_in_thread))
            return 3;
    while (atomic_load_explicit(&arrived, memory_order_relaxed) < count)
        usleep(1000);
    usleep(100000);
    // Last, so that it is asked to stop last and let go last by a tool that goes through the threads in order.
    bool clock = argc > 3 && strcmp(argv[3], "clock") == 0;
    if (clock && !start(read_clock))
        return 3;
    puts("ready");
    fflush(stdout);
    for (int byte; (byte = getchar()) != EOF;)
        if (clock && byte == '\n')
            atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
    return 0;
}
