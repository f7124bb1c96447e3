// SPDX-License-Identifier: Apache-2.0
// Where samples are taken: in malloc, or in the handler of a timer that each thread has. QUT_SAMPLER_MODE is "timer" or
// "malloc", QUT_SAMPLER_FILE the file that is written, QUT_SAMPLER_CACHE a directory with tables.
#include "bench/programs/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <qut/local.h>

#include "bench/programs/records.h"

enum { MALLOCS_A_SAMPLE = 100, TIMER_PERIOD_NS = 1000000, BUSY_NS = TIMER_PERIOD_NS / 4 };
#define EXPORTED __attribute__((visibility("default")))

enum sampler_mode sampler_mode;

static pthread_key_t thread_key;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

struct thread_state {
    struct sampled_thread *sampled; // NULL: this thread is not sampled
    timer_t timer;
    int64_t sampled_cpu_ns; // its processor time at the last sample
    unsigned mallocs;
    bool is_sampling;
};
static _Thread_local struct thread_state self __attribute__((tls_model("initial-exec")));

static void sample(const void *ucontext)
{
    int saved_errno = errno;
    if (self.sampled && !self.is_sampling) {
        self.is_sampling = true;
        walks_take(self.sampled, ucontext);
        self.is_sampling = false;
    }
    errno = saved_errno;
}

// A thread that slept since its last sample has the same stack, which would make walks look cheap.
static void on_timer(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t cpu_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (cpu_ns - self.sampled_cpu_ns < BUSY_NS)
        return;
    self.sampled_cpu_ns = cpu_ns;
    sample(ucontext);
}

// ---- threads

static bool start_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX};
    event._sigev_un._tid = gettid();
    // xz blocks all signals in its threads.
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGRTMAX);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    struct itimerspec period = {{0, TIMER_PERIOD_NS}, {0, TIMER_PERIOD_NS}};
    return timer_create(CLOCK_MONOTONIC, &event, &self.timer) == 0 && timer_settime(self.timer, 0, &period, NULL) == 0;
}

static void begin_thread(void)
{
    struct sampled_thread *sampled = walks_thread_new();
    if (!sampled)
        return;
    // libqut's end of the thread comes after ours: its key is younger.
    if (pthread_setspecific(thread_key, sampled) != 0 || qut_thread_register() != 0) {
        pthread_setspecific(thread_key, NULL);
        walks_thread_free(sampled);
        return;
    }
    self.sampled = sampled;
    if (sampler_mode == SAMPLER_TIMER)
        start_timer();
}

static void end_thread(void *sampled)
{
    if (sampler_mode == SAMPLER_TIMER)
        timer_delete(self.timer);
    self.sampled = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    walks_thread_free(sampled);
}

// The child has its parent's file mapped.
static void in_forked_child(void)
{
    self.sampled = NULL;
    sampler_mode = SAMPLER_OFF;
}

struct start {
    void *(*function)(void *);
    void *argument;
};

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    begin_thread();
    return start.function(start.argument);
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                            void *argument)
{
    if (!real_pthread_create)
        *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    // libqut's own thread is created before there is a mode.
    struct start *start = sampler_mode == SAMPLER_OFF ? NULL : malloc(sizeof *start);
    if (!start)
        return real_pthread_create(thread, attributes, function, argument);
    *start = (struct start){function, argument};
    int error = real_pthread_create(thread, attributes, run_thread, start);
    if (error != 0)
        free(start);
    return error;
}

// ---- malloc

void *__libc_malloc(size_t size); // glibc's own, which dlsym would have to be asked for, and dlsym may call malloc

EXPORTED void *malloc(size_t size)
{
    if (sampler_mode == SAMPLER_MALLOC && ++self.mallocs == MALLOCS_A_SAMPLE) {
        self.mallocs = 0;
        sample(NULL);
    }
    return __libc_malloc(size);
}

// ---- before main

static bool begin(const char *mode, const char *path, const char *cache)
{
    if (!records_open(path))
        return false;
    records_calibrate();
    if (pthread_key_create(&thread_key, end_thread) != 0 || !walks_start(cache))
        return false;
    pthread_atfork(NULL, NULL, in_forked_child);
    // A signal that no program has a use for: sort takes SIGPROF for one that ends it.
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (sigaction(SIGRTMAX, &action, NULL) != 0)
        return false;
    sampler_mode = strcmp(mode, "malloc") == 0 ? SAMPLER_MALLOC : SAMPLER_TIMER;
    begin_thread();
    return true;
}

__attribute__((constructor)) static void start_sampler(void)
{
    const char *mode = getenv("QUT_SAMPLER_MODE"), *path = getenv("QUT_SAMPLER_FILE");
    const char *cache = getenv("QUT_SAMPLER_CACHE");
    // What this program starts is not sampled.
    unsetenv("LD_PRELOAD");
    if (!mode || !path)
        return;
    if (!begin(mode, path, cache)) {
        fprintf(stderr, "sampler: cannot start\n");
        _exit(120);
    }
}
