// SPDX-License-Identifier: Apache-2.0
// Walks in signal handlers of two threads of a program, in turns: one with managed frames on its stack, one with as
// many frames of C. Each handler walks twice: first as a handler's walk finds the caches, then again at once. What
// joins (java_walks.c, node_walks.c) is loaded into the runtime; bench/managed/run builds and starts it.
#include "interrupted_walks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <qut/local.h>
#include <qutc/provide.h>

enum {
    FRAMES_MAX = 256,
    WALKS_MAX = 100000,
    TEXTS = 600,
    WARM_UP_WALKS = 500,
    PERIOD_NS = 1000000,
    YOUNG_BYTES = 16 << 20
};

struct subject {
    const char *name;
    bool may_guess;
    pid_t tid;
    volatile uint32_t walks;
    uintptr_t pcs[FRAMES_MAX];
    uint32_t frames[WALKS_MAX], first_cycles[WALKS_MAX], again_cycles[WALKS_MAX];
};
static struct subject managed, native = {.name = "native"};
static __thread struct subject *own;
static volatile uint64_t sink;
static unsigned native_depth;

static uint32_t walk(void *context, struct qut_end *end, uint32_t *count)
{
    uintptr_t *pcs = own->pcs;
    uint64_t begun = __rdtsc();
    *count = (uint32_t)qut_backtrace_context(context, pcs, FRAMES_MAX, end);
    return (uint32_t)(__rdtsc() - begun);
}

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    struct subject *subject = own;
    struct qut_end end;
    uint32_t count;
    if (!subject || subject->walks >= WALKS_MAX)
        return;
    uint32_t cycles = walk(context, &end, &count);
    if (end.reason != QUT_END_OUTERMOST || (end.guessed_frame != QUT_NO_GUESS && !subject->may_guess))
        return;
    uint32_t at = subject->walks;
    subject->frames[at] = count;
    subject->first_cycles[at] = cycles;
    subject->again_cycles[at] = walk(context, &end, &count);
    subject->walks = at + 1;
}

static void join_as(struct subject *subject)
{
    qut_thread_register();
    own = subject;
    subject->tid = gettid();
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// New memory as runtimes have it: through all of a young generation, and then from its beginning. malloc would give the
// same again, which stays in the caches with all that a walk needs: the other thread's walks were compared with warm
// ones.
static unsigned char *allocate(size_t size)
{
    static _Alignas(16) unsigned char young[YOUNG_BYTES];
    static size_t used;
    size = (size + 15) / 16 * 16;
    if (used + size > YOUNG_BYTES)
        used = 0;
    unsigned char *bytes = young + used;
    used += size;
    memset(bytes, 0, size);
    return bytes;
}

// As Walks.java and Walks.js have it.
static __attribute__((noinline)) void work(char *const *texts)
{
    for (unsigned round = 0; round < 4; round++) {
        char **sorted = (char **)(void *)allocate(TEXTS * sizeof *sorted);
        memcpy(sorted, texts, TEXTS * sizeof *sorted);
        qsort(sorted, TEXTS, sizeof *sorted, compare);
        for (unsigned i = 0; i < 20000; i++)
            sink += sink * 31 + (i ^ sink >> 7);
        const unsigned char *bytes = allocate(4000 + round);
        for (unsigned i = 0; i < 4000; i++)
            sink += bytes[i];
    }
}

static __attribute__((noinline)) void descend(unsigned left, char *const *texts)
{
    if (left)
        descend(left - 1, texts);
    else
        work(texts);
    __asm__ volatile("");
}

static void *run_native(void *unused)
{
    static char *texts[TEXTS];
    for (unsigned i = 0; i < TEXTS; i++)
        if (asprintf(&texts[i], "text %u", i * 7919 % 601) < 0)
            abort();
    join_as(&native);
    for (;;)
        descend(native_depth, texts);
    return unused;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t part(uint32_t *values, uint32_t count, unsigned percent)
{
    qsort(values, count, sizeof *values, by_value);
    return count ? values[(uint64_t)(count - 1) * percent / 100] : 0;
}

static void print(struct subject *subject)
{
    uint32_t walks = subject->walks;
    printf("%s %u %u %u %u %u %u\n", subject->name, part(subject->frames, walks, 50), walks,
           part(subject->first_cycles, walks, 50), part(subject->first_cycles, walks, 10),
           part(subject->first_cycles, walks, 90), part(subject->again_cycles, walks, 50));
}

static void interrupt(const struct subject *subject)
{
    const struct timespec pause = {.tv_nsec = PERIOD_NS};
    syscall(SYS_tgkill, getpid(), subject->tid, SIGPROF);
    nanosleep(&pause, NULL);
}

void walks_join(const char *name, bool may_guess)
{
    struct qut_options options = {
        .size = sizeof options, .flags = QUT_START_FRAME_POINTERS, .compile = qutc_compile_for_qut};
    if (qut_start(&options) != 0) {
        fprintf(stderr, "libqut does not start\n");
        exit(1);
    }
    managed.name = name;
    managed.may_guess = may_guess;
    join_as(&managed);
}

void walks_measure(unsigned seconds)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    qut_refresh();
    qut_wait(60000);
    for (unsigned i = 0; i < WARM_UP_WALKS * 4 && managed.walks < WARM_UP_WALKS; i++)
        interrupt(&managed);
    // As many frames: work, run_native and what starts threads are there, too.
    native_depth = part(managed.frames, managed.walks, 50) - 5;
    pthread_t thread;
    if (managed.walks < WARM_UP_WALKS / 2 || pthread_create(&thread, NULL, run_native, NULL) != 0) {
        fprintf(stderr, "few walks come to the root: %u\n", managed.walks);
        exit(1);
    }
    while (!native.tid)
        sched_yield();
    for (unsigned i = 0; i < WARM_UP_WALKS; i++)
        interrupt(&native);
    managed.walks = native.walks = 0;
    for (int64_t left = (int64_t)seconds * 1000000000 / PERIOD_NS; left > 0; left -= 2) {
        interrupt(&managed);
        interrupt(&native);
    }
    print(&managed);
    print(&native);
    fflush(stdout);
}
