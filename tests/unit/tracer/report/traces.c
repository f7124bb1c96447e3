// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/report/traces.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/golden.h"

enum { LARGE_THREADS = 8, LARGE_DEPTH = 50 };

// As clocks are: no two distances the same, in units of 128 ns, and the processor's time a little less.
static void make_noise(struct trace *trace)
{
    uint64_t state = 1;
    for (size_t t = 0; t < trace->thread_count; t++) {
        struct trace_sample *samples = trace->samples + trace->threads[t].first_sample;
        uint64_t idle_ns = 0;
        for (size_t i = 0; i < trace->threads[t].sample_count; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint64_t late_ns = (state >> 40) % 200000; // less than half of the distance of two samples
            idle_ns += (state >> 32) % 128 * 128;
            samples[i].first_ns = (samples[i].first_ns + late_ns) & ~(uint64_t)127;
            samples[i].last_ns = (samples[i].last_ns + late_ns) & ~(uint64_t)127;
            samples[i].cpu_ns = (samples[i].cpu_ns - (idle_ns < samples[i].cpu_ns ? idle_ns : 0)) & ~(uint64_t)127;
        }
    }
}

static uint32_t add_node(struct trace *trace, struct trace_node node)
{
    struct trace_node *nodes = realloc(trace->nodes, (trace->node_count + 1) * sizeof *nodes);
    if (!nodes)
        abort();
    trace->nodes = nodes;
    nodes[trace->node_count] = node;
    return (uint32_t)trace->node_count++;
}

// Nothing is lost, but one stack in two ends before its root, and a third of the ticks came late. One in four is in the
// kernel.
static void make_hollow(struct trace *trace)
{
    static struct trace_note notes[] = {{"ticks-due", NULL, 1500}, {"ticks-late", NULL, 500}};
    golden_large(trace, 1000, 1, 4);
    uint32_t cut = add_node(trace, (struct trace_node){.kind = QUT_TRACE_CLASS_END << QUT_TRACE_CLASS_SHIFT,
                                                       .class_ = QUT_TRACE_CLASS_END,
                                                       .depth = 1,
                                                       .module = TRACE_NONE,
                                                       .label = "[no unwind information covers the code]"});
    uint32_t kernel = add_node(trace, (struct trace_node){.kind = QUT_TRACE_CLASS_LABEL << QUT_TRACE_CLASS_SHIFT,
                                                          .class_ = QUT_TRACE_CLASS_LABEL,
                                                          .depth = 1,
                                                          .module = TRACE_NONE,
                                                          .label = "[kernel] write"});
    for (size_t i = 0; i < trace->sample_count; i += 2)
        trace->samples[i].node = cut;
    for (size_t i = 1; i < trace->sample_count; i += 4)
        trace->samples[i].node = kernel;
    trace->notes = notes;
    trace->note_count = trace->first_own_note = sizeof notes / sizeof *notes;
}

int make_trace(const char *what, struct trace *trace)
{
    if (strcmp(what, "golden") == 0 || strcmp(what, "damaged") == 0)
        golden_trace(trace);
    else if (strncmp(what, "noisy-", 6) == 0 && atol(what + 6) > 0)
        golden_large(trace, (size_t)atol(what + 6), LARGE_THREADS, LARGE_DEPTH);
    else if (strcmp(what, "empty") == 0)
        golden_large(trace, 0, 1, 1);
    else if (strcmp(what, "waits") == 0)
        waits_trace(trace);
    else if (strcmp(what, "hollow") == 0)
        make_hollow(trace);
    else if (atol(what) > 0)
        golden_large(trace, (size_t)atol(what), LARGE_THREADS, LARGE_DEPTH);
    else
        return -1;
    if (strcmp(what, "damaged") == 0)
        golden_damage(trace);
    if (strncmp(what, "noisy-", 6) == 0)
        make_noise(trace);
    return 0;
}
