// SPDX-License-Identifier: Apache-2.0
// A process that is watched by qut monitor, and counts for itself what it stored. Goes on until its standard input
// ends; then prints STORED and LOST.
// PATH "-": memory without a name.
//     monitor_subject PATH KIBIBYTES THREADS SAMPLES PAUSE_US close|leave|fork other|cpu
// Letters on its standard input are marks: m "something", o "something else", b and e of "work".
// Each thread stores SAMPLES at a time, once at least, then pauses. leave: it ends without closing its trace. fork: as
// close, but by a child, which is told of in a segment of its own. cpu: each sample is a tick, CPU_STEP_NS of processor
// time after the one before of its thread.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/trace.h>

enum { THREADS_MAX = 8, STACKS = 16, CPU_STEP_NS = 1024000 };
static bool has_cpu;
static atomic_bool is_over;
static unsigned samples, pause_us;

static void *store(void *number)
{
    char name[32];
    uint32_t nodes[STACKS];
    for (unsigned i = 0; i < STACKS; i++) {
        snprintf(name, sizeof name, "work %u", i);
        nodes[i] = qut_trace_label_node(0, name);
    }
    const uint32_t begin = qut_trace_label_node(0, "begin");
    uint64_t cpu_ns = 0;
    unsigned draw = 1 + (unsigned)(uintptr_t)number;
    do {
        for (unsigned i = 0; i < samples; i++) {
            draw = draw * 1103515245 + 12345;
            // Some come again: they are one record, which grows.
            cpu_ns += CPU_STEP_NS;
            const struct qut_event event = {.kind = has_cpu ? QUT_SAMPLE_CPU : QUT_SAMPLE_OTHER,
                                            .flags = QUT_EVENT_ON_CPU,
                                            .cpu_ns = has_cpu ? cpu_ns : 0};
            // The first is a run by itself: what a first run of several took is not known.
            const bool is_first = cpu_ns == CPU_STEP_NS;
            qut_trace_append_node(is_first ? begin : nodes[draw >> 16 & (draw >> 28 ? 1 : STACKS - 1)], &event);
        }
        usleep(pause_us);
    } while (!atomic_load(&is_over));
    return NULL;
}

static void tell(void)
{
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    uint64_t lost = 0;
    for (unsigned i = 0; i < sizeof counts.lost / sizeof *counts.lost; i++)
        lost += counts.lost[i];
    printf("%llu %llu\n", (unsigned long long)(counts.stored + counts.merged), (unsigned long long)lost);
    fflush(stdout);
}

static void make_mark(char what)
{
    switch (what) {
    case 'm': qut_trace_mark(QUT_MARK_INSTANT, 7, "something"); break;
    case 'o': qut_trace_mark(QUT_MARK_INSTANT, 7, "something else"); break;
    case 'b': qut_trace_mark(QUT_MARK_BEGIN, 3, "work"); break;
    case 'e': qut_trace_mark(QUT_MARK_END, 3, "work"); break;
    default: break;
    }
}

static void run(unsigned thread_count)
{
    pthread_t threads[THREADS_MAX];
    for (unsigned i = 0; i < thread_count; i++)
        if (pthread_create(&threads[i], NULL, store, (void *)(uintptr_t)i) != 0)
            exit(2);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        make_mark(byte);
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    tell();
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    has_cpu = strcmp(argv[7], "cpu") == 0;
    const unsigned thread_count = (unsigned)atoi(argv[3]);
    const struct qut_trace_options options = {.size = sizeof options,
                                              .path = strcmp(argv[1], "-") == 0 ? NULL : argv[1],
                                              .segment_bytes = strtoull(argv[2], NULL, 10) << 10,
                                              .thread_count = 16,
                                              .mode = QUT_TRACE_KEEP_NEWEST,
                                              .flags = QUT_TRACE_FOLLOW_FORK | (has_cpu ? QUT_TRACE_CPU_TIME : 0u)};
    samples = (unsigned)atoi(argv[4]);
    pause_us = (unsigned)atoi(argv[5]);
    if (thread_count > THREADS_MAX || qut_trace_open(&options) != 0)
        return 2;
    if (strcmp(argv[6], "fork") == 0) {
        const pid_t child = fork();
        int status = 2;
        if (child > 0) {
            waitpid(child, &status, 0);
            qut_trace_close();
            return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
        }
    }
    run(thread_count);
    if (strcmp(argv[6], "leave") == 0)
        _exit(0);
    qut_trace_close();
    return 0;
}
