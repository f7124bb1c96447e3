// SPDX-License-Identifier: Apache-2.0
// truth_dump FILE: a trace as lines of tab-separated words, for tests that know the truth.
//   s KIND TID FLAGS COUNT FIRST_NS LAST_NS NODE CPU_NS   a sample, and the processor time that it stands for
//   i KIND TID FROM_NS TO_NS LOCK OWNER WAKER NODE BEGIN_NODE RELEASE_TID RELEASE_NODE IS_OPEN    an interval
//   p PID TOTAL...          a process, and its sums (enum qut_trace_total)
//   n NODE WHOLE STACK      a node that stands in one of these; WHOLE: 1, its stack reaches the root, else 0; STACK:
//                           "read;fill;main", innermost first
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracer/analysis/analysis.h"
#include "tracer/analysis/weights.h"
#include "tracer/names/names.h"

static const struct trace *trace;
static const struct names *names;
static bool *is_used;

static uint32_t use(uint32_t node)
{
    if (node != TRACE_NONE)
        is_used[node] = true;
    return node;
}

static uint32_t tid_of(uint32_t thread)
{
    return thread == TRACE_NONE ? 0 : trace->threads[thread].tid;
}

static void print_processes(void)
{
    for (size_t i = 0; i < trace->process_count; i++) {
        printf("p\t%" PRIu32, trace->processes[i].pid);
        for (unsigned total = 0; total < QUT_TRACE_TOTAL_OWN_FIRST; total++)
            printf("\t%" PRIu64, trace->processes[i].totals[total]);
        putchar('\n');
    }
}

static void print_samples(void)
{
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        const struct trace_sample *sample;
        struct weights_walk walk;
        struct weights weights;
        analysis_weights_begin(&walk, trace, thread);
        while (analysis_weights_next(&walk, &sample, &weights))
            printf("s\t%s\t%" PRIu32 "\t%d\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n",
                   trace_kind_name(trace, sample->kind), thread->tid, sample->flags, sample->count, sample->first_ns,
                   sample->last_ns, use(sample->node), weights.of[MEASURE_CPU]);
    }
}

// The thread and the stack of a sample, by its place among all.
static void find_release(size_t sample, uint32_t *tid, uint32_t *node)
{
    *tid = 0, *node = TRACE_NONE;
    for (size_t i = 0; sample != SIZE_MAX && i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (sample - thread->first_sample < thread->sample_count) {
            *tid = thread->tid;
            *node = use(trace->samples[sample].node);
        }
    }
}

static void print_intervals(const struct intervals *intervals)
{
    for (size_t i = 0; i < intervals->count; i++) {
        const struct interval *interval = &intervals->items[i];
        uint32_t release_tid, release_node;
        find_release(interval->release, &release_tid, &release_node);
        printf("i\t%s\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32
               "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%d\n",
               trace_kind_name(trace, interval->kind), tid_of(interval->thread), interval->from_ns, interval->to_ns,
               interval->lock, interval->owner_tid, interval->waker_tid, use(interval->node), use(interval->begin_node),
               release_tid, release_node, interval->is_open);
    }
}

static void print_node(uint32_t node)
{
    bool is_whole = true;
    for (uint32_t at = node; at; at = trace->nodes[at].parent)
        is_whole &= trace->nodes[at].class_ != QUT_TRACE_CLASS_END;
    printf("n\t%" PRIu32 "\t%d\t", node, is_whole && node);
    for (uint32_t at = node; at; at = trace->nodes[at].parent)
        for (size_t i = 0; i < names_count(names, at); i++)
            printf("%s%s", at == node && i == 0 ? "" : ";", names_at(names, at, i)->function);
    putchar('\n');
}

int main(int argc, char **argv)
{
    struct trace read;
    struct base_error error = {0};
    const struct names_options options = {0};
    struct intervals intervals = {0};
    struct names *found = NULL;
    if (argc != 2 || trace_read(argv[1], &read, &error) != 0 || !(found = names_of(&read, &options, &error)) ||
        analysis_intervals_make(&intervals, &read) != 0) {
        fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : argv[0], error.detail);
        return 2;
    }
    trace = &read;
    names = found;
    is_used = calloc(read.node_count, sizeof *is_used);
    if (!is_used)
        return 2;
    print_processes();
    print_samples();
    print_intervals(&intervals);
    for (uint32_t node = 0; node < read.node_count; node++)
        if (is_used[node])
            print_node(node);
    free(is_used);
    analysis_intervals_free(&intervals);
    names_free(found);
    trace_free(&read);
    return ferror(stdout) || fflush(stdout) != 0 ? 2 : 0;
}
