// SPDX-License-Identifier: Apache-2.0
// The library is loaded, used by threads, and unloaded while they live: they end as if it had never been there.
// Usage: unload_test LIBQUT_SO [emulated]
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/libqut/sample/subject.h"

enum { THREADS = 4, ROUNDS = 3 };
static const char *path;
static volatile int ready, may_end;
static int (*thread_begin)(void);

static void *use_it(void *unused)
{
    (void)unused;
    thread_begin();
    __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
    while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
        subject_spin_ms(1);
    return NULL;
}

static bool is_mapped(void)
{
    char line[1024];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, "libqut.so");
    if (maps)
        fclose(maps);
    return found;
}

// dlsym gives objects, not functions.
#define FUNCTION(type, name, symbol)                                                                                   \
    type name;                                                                                                         \
    *(void **)&name = dlsym(library, symbol);                                                                          \
    if (!CHECK(name != NULL, "no %s", symbol))                                                                         \
    return

typedef int start_fn(const struct qut_options *);
typedef int open_fn(const struct qut_trace_options *);
typedef int sample_fn(const struct qut_sampling_options *);
typedef int begin_fn(void);
typedef void end_fn(void);

static void once(void)
{
    pthread_t threads[THREADS];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(library != NULL, "%s", dlerror()))
        return;
    FUNCTION(start_fn *, start, "qut_start");
    FUNCTION(open_fn *, open_trace, "qut_trace_open");
    FUNCTION(sample_fn *, sample, "qut_sampling_start");
    FUNCTION(end_fn *, end_sampling, "qut_sampling_stop");
    FUNCTION(end_fn *, end_trace, "qut_trace_close");
    FUNCTION(end_fn *, end_qut, "qut_stop");
    FUNCTION(begin_fn *, begin, "qut_sampling_thread_begin");
    struct qut_options options = {.size = sizeof options};
    struct qut_trace_options trace = {.size = sizeof trace, .segment_bytes = 4 << 20};
    struct qut_sampling_options sampling = {.size = sizeof sampling, .period_ns = 1000000};
    CHECK(start(&options) == 0 && open_trace(&trace) == 0, "cannot start");
    int result = sample(&sampling);
    CHECK(result == 0, "%d", result);
    thread_begin = begin;
    ready = may_end = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use_it, NULL);
    CHECK(subject_wait_for(&ready, THREADS), "they did not begin");
    subject_spin_ms(10);
    end_sampling();
    end_trace();
    end_qut();
    // What is still on its way out of a handler: no more than its last instructions.
    struct timespec moment = {0, 20000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    CHECK(dlclose(library) == 0, "%s", dlerror());
    CHECK(!is_mapped(), "it is still there");
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

TEST(threads_survive_its_unloading)
{
    for (int round = 0; round < ROUNDS; round++)
        once();
    fflush(stdout);
    pid_t child = fork(); // no handlers of the unloaded library are called
    if (child == 0)
        _exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "status %x", (unsigned)status);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    path = argv[1];
    // Setting a signal to be ignored throws away what waits of it, in the kernel: not in QEMU, which keeps signals that
    // came in its own queue, and delivers them to the action that is there by then. Ours is to give back this one.
    if (argc > 2)
        signal(SIGSTKFLT, SIG_IGN);
    RUN(threads_survive_its_unloading);
    return tap_finish();
}
