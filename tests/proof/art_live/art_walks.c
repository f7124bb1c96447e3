// SPDX-License-Identifier: Apache-2.0
// Starts Android's virtual machine, runs the rig's program in three threads, and walks each of them at random instants,
// in a signal handler. The rest is in judge.c. One line of JSON says what was seen; run starts this.
//
// usage: art_walks SECONDS WALKS DEX [JAR] -- OPTION OF THE MACHINE...
//
//   WALKS  0: none; the process says where its methods and its account are, for one that walks it from outside
//   DEX    the program's bytecode, to know where its methods' lies in memory
//   JAR    the program is loaded from there, with its odex; else it is on the boot class path
#include "machine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <qut/qut.h>
#ifndef ART_WALKS_NO_COMPILER
#include <qutc/provide.h>
#endif

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define NOINLINE __attribute__((noinline))

enum { PERIOD_NS = 400000, FRAMES_MAX = 256, WAIT_MS = 60000 };

static _Atomic unsigned walk_count, walks_wanted;
static volatile int sink;

// ---- what the program calls

static NOINLINE int busy(int rounds)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum = (int)((unsigned)sum * 31u + (unsigned)i);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static NOINLINE int call_from_depth(JNIEnv *env, jlong shadow, int depth)
{
    if (depth > 0) {
        int result = call_from_depth(env, shadow, depth - 1);
        __asm__ volatile("" : "+r"(result));
        return result;
    }
    sink += busy(200);
    int result = (*env)->CallStaticIntMethod(env, machine.worker, machine.called_from_native, shadow, 3);
    sink += busy(100);
    return result;
}

static jint JNICALL native_cb(JNIEnv *env, jclass class, jlong shadow, jint depth)
{
    (void)class;
    return call_from_depth(env, shadow, depth & 3);
}

static __thread JNIEnv *sort_env;
static __thread jlong sort_shadow;

static int compare(const void *a, const void *b)
{
    int difference = *(const int *)a - *(const int *)b;
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
    (void)env, (void)class, (void)shadow;
    return busy(300 + more);
}

static jint JNICALL native_fast(JNIEnv *env, jclass class, jlong shadow, jint more)
{
    (void)env, (void)class, (void)shadow;
    return busy(200 + more);
}

static jint native_critical(jlong shadow, jint more)
{
    (void)shadow;
    return busy(200 + more);
}

// ---- walks

static __thread int own_index = -1;
static __thread struct qut_frame own_frames[FRAMES_MAX];

// How much stack a walk takes: one of many is walked again, above painted bytes.
enum { PAINTED_BYTES = 4096, PAINT = 0xa7, MEASURE_EACH = 16 };
static _Atomic unsigned stack_bytes;
static __thread uintptr_t own_pcs[FRAMES_MAX];

static NOINLINE void measure(const void *context)
{
    volatile unsigned char painted[PAINTED_BYTES];
    for (unsigned i = 0; i < PAINTED_BYTES; i++)
        painted[i] = PAINT;
    __asm__ volatile("" : : "r"(painted), "r"(context) : "memory");
}

static NOINLINE void walk_again(const void *context)
{
    struct qut_end end;
    qut_backtrace_context(context, own_pcs, FRAMES_MAX, &end);
}

static NOINLINE unsigned count_lost(void)
{
    volatile unsigned char painted[PAINTED_BYTES];
    unsigned at = 256; // what this function's own calls are told to leave alone
    __asm__ volatile("" : : "r"(painted) : "memory");
    while (at < PAINTED_BYTES && painted[at] == PAINT)
        at++;
    return PAINTED_BYTES - at;
}

static void measure_stack(const void *context)
{
    measure(context);
    walk_again(context);
    unsigned bytes = count_lost(), most = stack_bytes;
    while (bytes > most && !atomic_compare_exchange_weak(&stack_bytes, &most, bytes))
        ;
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    int saved = errno;
    if (own_index < 0 || walk_count >= walks_wanted)
        return;
    walk_count++;
    struct qut_cursor cursor;
    struct qut_end end;
    unsigned count = 0;
    qut_cursor_context(&cursor, context);
    do
        qut_cursor_frame(&cursor, &own_frames[count++]);
    while (count < FRAMES_MAX && qut_cursor_next(&cursor));
    qut_cursor_end(&cursor, &end);
    judge_walk(own_frames, count, &end, machine_shadow((unsigned)own_index));
    if (walk_count % MEASURE_EACH == 0)
        measure_stack(context);
    errno = saved;
}

static void walk_this_thread(unsigned index)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct itimerspec every = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    timer_t timer;
    if (walks_wanted == 0) {
        printf("{\"thread\": %u, \"tid\": %d, \"shadow\": %llu}\n", index, (int)gettid(),
               (unsigned long long)(uintptr_t)machine_shadow(index));
        fflush(stdout);
        return;
    }
    qut_thread_register();
    own_index = (int)index;
    event.sigev_notify_thread_id = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        judge_give_up("no timer");
}

static void JNICALL native_here(JNIEnv *env, jclass class, jlong shadow)
{
    (void)env, (void)class;
    walk_this_thread((unsigned)(((uintptr_t)shadow - (uintptr_t)machine.shadows) / MACHINE_SHADOW_BYTES));
}

static void start_walks(void)
{
    // Tables were made before, where there is no compiler for this machine.
    struct qut_options options = {.size = sizeof options, .cache_directory = getenv("ART_WALKS_CACHE")};
#ifndef ART_WALKS_NO_COMPILER
    static struct qutc_provide_options provide = {.size = sizeof provide};
    options.compile = qutc_compile_for_qut;
    options.compile_context = &provide;
#endif
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (qut_start(&options) != 0 || qut_refresh() < 0 || qut_wait(WAIT_MS) != 0 ||
        sigaction(SIGPROF, &action, NULL) != 0)
        judge_give_up("libqut does not start");
}

// ---- the machine

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double until_s;

static bool is_over(void)
{
    return now_s() >= until_s || (walks_wanted && walk_count >= walks_wanted);
}

// There in a program that does not judge walks, but what they cost: bench/managed.
__attribute__((weak)) void art_walks_first_thread(void);

static void walk_first_thread(void)
{
    if (art_walks_first_thread)
        art_walks_first_thread();
    else
        walk_this_thread(0);
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
    walks_wanted = (unsigned)atoi(argv[2]);
    const char *jar = machine_at > 4 ? argv[4] : NULL;
    JNIEnv *env = machine_start(argv + machine_at + 1, argc - machine_at - 1, jar, &natives);
    judge_place_methods(env, jar, argv[3]);
    if (walks_wanted)
        start_walks();
    else
        judge_print_methods();
    until_s = now_s() + seconds;
    machine_run(env, walk_first_thread, is_over);
    walks_wanted = 0;
    signal(SIGPROF, SIG_IGN);
    usleep(20000); // handlers that have begun
    judge_report(stack_bytes);
    _exit(0); // the machine is not asked to end: its other threads run
}
