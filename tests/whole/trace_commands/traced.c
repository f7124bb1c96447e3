// SPDX-License-Identifier: Apache-2.0
// A program that traces itself, for the commands that read traces: a fixed number of samples whose stacks are its own
// functions and names.
//
//     traced SEGMENT [killed]     killed: it dies in the middle, by SIGKILL
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <qut/qut.h>
#include <qut/trace.h>

enum { SAMPLES = 100, THREADS = 2 };

static uint64_t start_ns;

// Two stacks in turn, a millisecond apart: none is merged.
__attribute__((noinline)) static void take_samples(uint64_t first)
{
    uint32_t outer = qut_trace_label_node(0, "outer; \"function\"");
    uint32_t nodes[] = {qut_trace_label_node(outer, "even"),
                        qut_trace_node(qut_trace_label_node(outer, "odd"), (uintptr_t)take_samples, 0)};
    for (uint64_t i = 0; i < SAMPLES; i++) {
        struct qut_event event = {.time_ns = start_ns + (first + i) * 1000000,
                                  .cpu_ns = 1 + i * 1000000,
                                  .kind = QUT_SAMPLE_CPU,
                                  .flags = QUT_EVENT_ON_CPU};
        qut_trace_append_node(nodes[i % 2], &event);
    }
}

static void *work(void *context)
{
    qut_trace_thread_register();
    take_samples(0);
    return context;
}

int main(int argc, char **argv)
{
    struct qut_trace_options options = {.size = sizeof options,
                                        .path = argc > 1 ? argv[1] : NULL,
                                        .flags = QUT_TRACE_CPU_TIME,
                                        .segment_bytes = 4 << 20};
    if (qut_start(&(struct qut_options){.size = sizeof(struct qut_options)}) != 0 || qut_trace_open(&options) != 0)
        return 1;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qut_trace_mark(QUT_MARK_BEGIN, 1, "request");
    take_samples(0);
    qut_trace_mark(QUT_MARK_END, 1, "request");
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "killed") == 0)
        raise(SIGKILL);
    qut_trace_close();
    return 0;
}
