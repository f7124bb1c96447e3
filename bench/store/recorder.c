// SPDX-License-Identifier: Apache-2.0
// A shared object that is preloaded into a program and stores samples of it: each thread once in a millisecond of its
// own processor time, with the metrics that the kernel counts for it. QUT_STORE_SEGMENT is the segment's path (in
// /dev/shm), QUT_STORE_CACHE a directory for tables, QUT_STORE_BYTES the segment's size, QUT_STORE_METRICS: with all
// metrics.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qut/qut.h>
#include <qutc/provide.h>

enum { PERIOD_NS = 1000000 };
#define EXPORTED __attribute__((visibility("default")))

static bool is_recording, with_metrics;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static _Thread_local int trigger __attribute__((tls_model("initial-exec"))) = -1;
static pthread_key_t end_key;

static void on_tick(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    int saved_errno = errno;
    struct rusage used;
    uint64_t metrics[QUT_METRIC_COUNT] = {0};
    struct qut_event event = {.kind = QUT_SAMPLE_CPU, .flags = QUT_EVENT_ON_CPU};
    // Its processor time is that of the last clock tick: seen to be 4 ms old. The store reads the clock of the thread.
    if (with_metrics && getrusage(RUSAGE_THREAD, &used) == 0) {
        metrics[QUT_METRIC_MINOR_FAULTS] = (uint64_t)used.ru_minflt;
        metrics[QUT_METRIC_MAJOR_FAULTS] = (uint64_t)used.ru_majflt;
        metrics[QUT_METRIC_VOLUNTARY_SWITCHES] = (uint64_t)used.ru_nvcsw;
        metrics[QUT_METRIC_INVOLUNTARY_SWITCHES] = (uint64_t)used.ru_nivcsw;
        event.metrics = metrics;
    }
    qut_trace_sample(ucontext, &event);
    errno = saved_errno;
}

static void begin_thread(void)
{
    qut_thread_register();
    if (qut_trace_thread_register() != 0)
        return;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGRTMAX);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = PERIOD_NS,
        .wakeup_events = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    trigger = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (trigger < 0)
        return;
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    fcntl(trigger, F_SETOWN_EX, &owner);
    fcntl(trigger, F_SETSIG, SIGRTMAX);
    fcntl(trigger, F_SETFL, O_ASYNC);
    pthread_setspecific(end_key, &trigger);
}

static void end_thread(void *value)
{
    (void)value;
    int last = trigger;
    trigger = -1;
    if (last >= 0)
        close(last);
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
    struct start *start = is_recording ? malloc(sizeof *start) : NULL;
    if (!start)
        return real_pthread_create(thread, attributes, function, argument);
    *start = (struct start){function, argument};
    int error = real_pthread_create(thread, attributes, run_thread, start);
    if (error != 0)
        free(start);
    return error;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("QUT_STORE_SEGMENT"), *bytes = getenv("QUT_STORE_BYTES");
    if (!path)
        return;
    with_metrics = getenv("QUT_STORE_METRICS") != NULL;
    unsetenv("LD_PRELOAD"); // children are not recorded
    struct qut_options options = {
        .size = sizeof options, .cache_directory = getenv("QUT_STORE_CACHE"), .compile = qutc_compile_for_qut};
    struct qut_trace_options trace = {
        .size = sizeof trace,
        .path = path,
        .segment_bytes = bytes ? strtoull(bytes, NULL, 0) : 0,
        .flags = QUT_TRACE_CPU_TIME,
        .metric_mask = with_metrics ? 0xf : 0,
    };
    int error = qut_start(&options);
    if (error == 0)
        error = qut_wait(60000);
    if (error == 0)
        error = qut_trace_open(&trace);
    if (error != 0) {
        fprintf(stderr, "recorder: %s: %s\n", path, strerror(-error));
        exit(2);
    }
    pthread_key_create(&end_key, end_thread);
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMAX, &action, NULL);
    is_recording = true;
    begin_thread();
}

__attribute__((destructor)) static void end(void)
{
    if (is_recording)
        qut_trace_close();
}
