// SPDX-License-Identifier: Apache-2.0
// Runs the rig's program, whose native methods now and then stay where they are for a while, and says when, and which
// of its methods are called meanwhile. What looks at it from outside can be compared with that, whatever it is. names
// starts this.
//
// usage: art_held SECONDS HELD_MS EVERY_MS [JAR] -- OPTION OF THE MACHINE...
//
//   HELD_MS   how long a thread stays
//   EVERY_MS  how long it runs before
//   JAR       the program is loaded from there, with its odex; else it is on the boot class path
//
// Prints "ready PID"; then for each time "held THREAD WHERE FROM NUMBER...", when it begins, and "gone THREAD FROM TO"
// when it ends: FROM and TO in ns of CLOCK_MONOTONIC, the outermost method's number first; WHERE is the function that
// the thread stays in, another one each time, so that a stack tells which time it is of.
#include "machine.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { DEPTH_MAX = 254, LINE_BYTES = 2048, PLACES = 8 };

static uint64_t held_ns, every_ns;
static __thread uint64_t next_ns;
static volatile int sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(const char *text, size_t length)
{
    if (write(STDOUT_FILENO, text, length) != (ssize_t)length)
        _exit(1); // nobody listens any more
}

static __thread unsigned held_count;

static NOINLINE void hold(const struct shadow *shadow, uint64_t from_ns, const char *where)
{
    char line[LINE_BYTES];
    int tid = gettid();
    uint32_t depth = shadow->depth < DEPTH_MAX ? shadow->depth : DEPTH_MAX;
    int length = snprintf(line, sizeof line, "held %d %s %llu", tid, where, (unsigned long long)from_ns);
    for (uint32_t i = 0; i < depth; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %u", shadow->ids[i]);
    line[length++] = '\n';
    say(line, (size_t)length);
    uint64_t to_ns;
    while ((to_ns = now_ns()) - from_ns < held_ns && !shadow->stop)
        for (int i = 0; i < 2000; i++)
            sink += i;
    length =
        snprintf(line, sizeof line, "gone %d %llu %llu\n", tid, (unsigned long long)from_ns, (unsigned long long)to_ns);
    say(line, (size_t)length);
}

// Not one as the other, or they would be one.
#define PLACE(NUMBER)                                                                                                  \
    static NOINLINE void held_at_##NUMBER(const struct shadow *shadow, uint64_t from_ns)                               \
    {                                                                                                                  \
        hold(shadow, from_ns, "held_at_" #NUMBER);                                                                     \
        sink += NUMBER;                                                                                                \
    }                                                                                                                  \
    static_assert(NUMBER < PLACES, "one each")
PLACE(0);
PLACE(1);
PLACE(2);
PLACE(3);
PLACE(4);
PLACE(5);
PLACE(6);
PLACE(7);

static void (*const places[])(const struct shadow *, uint64_t) = {held_at_0, held_at_1, held_at_2, held_at_3,
                                                                  held_at_4, held_at_5, held_at_6, held_at_7};

static int pass(jlong shadow, int more)
{
    uint64_t from_ns = now_ns();
    if (!next_ns)
        next_ns = from_ns + every_ns;
    if (from_ns >= next_ns) {
        places[held_count++ % PLACES]((const struct shadow *)(uintptr_t)shadow, from_ns);
        // Another time from other methods.
        next_ns = now_ns() + every_ns / 2 + (uint64_t)rand() % (every_ns + 1);
    }
    return more;
}

// ---- what the program calls

static jint JNICALL native_cb(JNIEnv *env, jclass class, jlong shadow, jint depth)
{
    (void)class;
    pass(shadow, depth);
    return (*env)->CallStaticIntMethod(env, machine.worker, machine.called_from_native, shadow, 3);
}

static __thread JNIEnv *sort_env;
static __thread jlong sort_shadow;

static int compare(const void *a, const void *b)
{
    int difference = *(const int *)a - *(const int *)b;
    pass(sort_shadow, 0);
    return (*sort_env)->CallStaticIntMethod(sort_env, machine.worker, machine.called_by_sort, sort_shadow, difference);
}

static jint JNICALL native_sort(JNIEnv *env, jclass class, jlong shadow, jint which)
{
    int values[8] = {5, 2, 7, 1, 8, 3, 6, 4};
    (void)class;
    sort_env = env;
    sort_shadow = shadow;
    qsort(values, 8, sizeof *values, compare);
    return values[which & 7];
}

static jint JNICALL native_spin(JNIEnv *env, jclass class, jlong shadow, jint more)
{
    (void)env, (void)class;
    return pass(shadow, more);
}

static jint JNICALL native_fast(JNIEnv *env, jclass class, jlong shadow, jint more)
{
    (void)env, (void)class;
    return pass(shadow, more);
}

static jint native_critical(jlong shadow, jint more)
{
    return pass(shadow, more);
}

static void JNICALL native_here(JNIEnv *env, jclass class, jlong shadow)
{
    (void)env, (void)class, (void)shadow;
}

// ---- the machine

static uint64_t until_ns;

static bool is_over(void)
{
    return now_ns() >= until_ns;
}

// JNI takes what it calls as data.
static const struct machine_natives natives = {(void *)native_cb,   (void *)native_sort,     (void *)native_spin,
                                               (void *)native_fast, (void *)native_critical, (void *)native_here};

int main(int argc, char **argv)
{
    int machine_at = 4;
    while (machine_at < argc && strcmp(argv[machine_at], "--") != 0)
        machine_at++;
    if (argc < 5 || machine_at == argc)
        judge_give_up("usage");
    double seconds = atof(argv[1]);
    held_ns = (uint64_t)atoi(argv[2]) * 1000000u;
    every_ns = (uint64_t)atoi(argv[3]) * 1000000u;
    const char *jar = machine_at > 4 ? argv[4] : NULL;
    JNIEnv *env = machine_start(argv + machine_at + 1, argc - machine_at - 1, jar, &natives);
    char line[64];
    say(line, (size_t)snprintf(line, sizeof line, "ready %d\n", (int)getpid()));
    until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    machine_run(env, NULL, is_over);
    usleep(100000); // the others
    _exit(0);       // the machine is not asked to end: its other threads run
}
