// SPDX-License-Identifier: Apache-2.0
// Activities that run code of all kinds: libc's assembly, its allocator, callbacks from it, jumps, depth.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/proof/storm/storm.h"

static volatile uint64_t sink;

__attribute__((noinline)) void storm_spin(unsigned rounds)
{
    uint64_t x = rounds;
    for (unsigned i = 0; i < rounds * 200; i++)
        x = x * UINT64_C(6364136223846793005) + i;
    sink = x;
}

__attribute__((noinline)) static int recurse(int depth)
{
    volatile char frame[64];
    frame[depth % 64] = (char)depth;
    if (depth == 0) {
        storm_spin(20);
        storm_walk_here();
        return frame[0];
    }
    return recurse(depth - 1) + frame[depth % 64];
}

static void deep(unsigned round)
{
    for (unsigned i = 0; i < 10; i++)
        recurse(20 + (int)(round * 7 + i) % 60);
    // Deeper than a synchronous walk has room for; handlers have more.
    volatile char frame[8];
    frame[0] = 0;
    (void)frame;
}

static void allocate(unsigned round)
{
    void *blocks[64] = {0};
    for (unsigned i = 0; i < 3000; i++) {
        unsigned at = (i * 7 + round) % 64;
        if (i % 3 == 0) {
            blocks[at] = realloc(blocks[at], (i * 131 + round) % 5000 + 1);
        } else {
            free(blocks[at]);
            blocks[at] = i % 97 ? malloc((i * 37) % 3000 + 1) : calloc(1, 200000);
        }
    }
    for (unsigned i = 0; i < 64; i++)
        free(blocks[i]);
}

static int compare(const void *a, const void *b)
{
    const unsigned *x = a, *y = b;
    if ((*x & 255) == 7)
        storm_walk_here();
    return (*x > *y) - (*x < *y);
}

static void sort(unsigned round)
{
    unsigned values[300];
    for (unsigned i = 0; i < 300; i++)
        values[i] = (i * 2654435761u) ^ round;
    qsort(values, 300, sizeof *values, compare);
    unsigned key = values[150];
    sink += bsearch(&key, values, 300, sizeof *values, compare) != NULL;
}

static void strings(unsigned round)
{
    static _Thread_local char from[40000], to[40000];
    for (unsigned i = 0; i < 60; i++) {
        size_t size = (i * 661 + round * 17) % 39000;
        memset(from, 'a' + (int)(i % 20), size);
        from[size] = 0;
        memcpy(to, from, size + 1);
        memmove(to + 1, to, size);
        sink += strlen(from) + (memchr(to, 'z', size) != NULL) + (strchr(from, 'b') != NULL) +
                (size_t)memcmp(to, from, size) + (strstr(from, "aab") != NULL) + strnlen(to, size) +
                (strrchr(from, 'q') != NULL) + (size_t)strcasecmp(from, to) + (size_t)strncmp(from, to, size);
        strcpy(to, from);
    }
}

static void numbers(unsigned round)
{
    double x = round;
    char text[64];
    for (unsigned i = 0; i < 400; i++) {
        x = sin(x) + cos(x * 3) + exp(-x * x) + pow(fabs(x), 1.5) + log(fabs(x) + 1);
        snprintf(text, sizeof text, "%.17g %u", x, i);
        sink += strtod(text, NULL) > 0;
    }
}

static _Thread_local jmp_buf jump;
static volatile bool always = true; // or the compiler knows that nothing returns

__attribute__((noinline)) static void jump_out(int depth)
{
    if (depth == 0) {
        storm_walk_here();
        if (always)
            longjmp(jump, 1);
        return;
    }
    jump_out(depth - 1);
    sink++;
}

static void jumps(unsigned round)
{
    for (volatile unsigned i = 0; i < 200; i++)
        if (setjmp(jump) == 0)
            jump_out((int)(i + round) % 10);
}

static void calls_of_the_kernel(unsigned round)
{
    int ends[2];
    char byte = 1;
    if (pipe(ends) != 0)
        return;
    for (unsigned i = 0; i < 300; i++) {
        struct timespec now, pause = {.tv_nsec = 1000 * (long)(round % 3)};
        clock_gettime(CLOCK_MONOTONIC, &now); // the vdso
        clock_gettime(CLOCK_REALTIME, &now);
        sink += (uint64_t)time(NULL);
        sink += (uint64_t)(write(ends[1], &byte, 1) + read(ends[0], &byte, 1));
        if (i % 100 == 0)
            nanosleep(&pause, NULL);
    }
    close(ends[0]);
    close(ends[1]);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void locks(unsigned round)
{
    for (unsigned i = 0; i < 300; i++) {
        pthread_mutex_lock(&lock);
        storm_spin(1 + round % 2);
        pthread_mutex_unlock(&lock);
    }
}

const struct storm_activity storm_activities[] = {
    {"deep recursion", deep},
    {"dlopen and dlclose", storm_libraries},
    {"malloc", allocate},
    {"qsort", sort},
    {"coroutines", storm_coroutine},
    {"string functions", strings},
    {"C++ exceptions", storm_exceptions},
    {"longjmp", jumps},
    {"fork", storm_fork},
    {"system calls", calls_of_the_kernel},
    {"sigaltstack", storm_alternate_stack},
    {"registration", storm_registration},
    {"floating point", numbers},
    {"vfork", storm_vfork},
    {"mutex", locks},
    {"threads", storm_churn},
};
const unsigned storm_activity_count = sizeof storm_activities / sizeof *storm_activities;
