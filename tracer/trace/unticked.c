// SPDX-License-Identifier: Apache-2.0
// Ticks tell where processor time went. A thread that ends before its first one, or had none yet, has used time all the
// same, and its samples at sync points, its end among them, say nothing of where. That time has a frame of its own.
#include <string.h>

#include "tracer/trace/raw_trace.h"

static bool has_tick(const struct trace *trace, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (trace_sample_is_tick(&trace->samples[i]))
            return true;
    return false;
}

static bool were_ticks_due(const struct trace *trace)
{
    for (size_t i = 0; i < trace->note_count; i++)
        if (trace->notes[i].text && strcmp(trace->notes[i].name, "trigger") == 0 &&
            strcmp(trace->notes[i].text, "none") != 0)
            return true;
    return has_tick(trace, 0, trace->sample_count);
}

bool trace_thread_is_unticked(const struct trace *trace, const struct trace_thread *thread)
{
    const struct trace_sample *samples = &trace->samples[thread->first_sample];
    size_t count = thread->sample_count;
    return count && samples[count - 1].cpu_ns > samples[0].cpu_ns && !has_tick(trace, thread->first_sample, count);
}

bool trace_add_unticked(struct trace *trace)
{
    size_t at = 0;
    if (!trace->has_cpu_time || !were_ticks_due(trace))
        return true;
    while (at < trace->thread_count && !trace_thread_is_unticked(trace, &trace->threads[at]))
        at++;
    if (at == trace->thread_count || trace->node_count >= UINT32_MAX)
        return true;
    struct trace_node *nodes = trace_memory_take(trace->memory, trace->node_count + 1, sizeof *nodes);
    if (!nodes)
        return false;
    memcpy(nodes, trace->nodes, trace->node_count * sizeof *nodes);
    trace->unticked_node = (uint32_t)trace->node_count;
    nodes[trace->node_count++] = (struct trace_node){.kind = QUT_TRACE_CLASS_LABEL << QUT_TRACE_CLASS_SHIFT,
                                                     .class_ = QUT_TRACE_CLASS_LABEL,
                                                     .depth = 1,
                                                     .module = TRACE_NONE,
                                                     .label = "[met by no tick]"};
    trace->nodes = nodes;
    return true;
}
