// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden/build.h"

#include <stdlib.h>
#include <string.h>

// The array with room for one more; `item` is put there.
static void *add(void *array, size_t *room, size_t *count, const void *item, size_t item_bytes)
{
    if (*count == *room) {
        *room = *room ? *room * 2 : 64;
        array = realloc(array, *room * item_bytes);
        if (!array)
            abort();
    }
    memcpy((char *)array + *count * item_bytes, item, item_bytes);
    ++*count;
    return array;
}

void build_begin(struct build_trace *build, struct trace *trace)
{
    *trace = (struct trace){0};
    *build = (struct build_trace){.trace = trace};
    build_node(build, 0, QUT_TRACE_CLASS_CODE, 0, TRACE_NONE, 0);
}

uint32_t build_module(struct build_trace *build, const struct trace_module *module)
{
    struct trace *trace = build->trace;
    trace->modules = add(trace->modules, &build->module_room, &trace->module_count, module, sizeof *module);
    return (uint32_t)trace->module_count - 1;
}

static uint32_t put_node(struct build_trace *build, struct trace_node node)
{
    struct trace *trace = build->trace;
    if (trace->node_count) {
        unsigned depth = trace->nodes[node.parent].depth;
        node.depth = depth == UINT16_MAX ? UINT16_MAX : (uint16_t)(depth + 1);
    }
    trace->nodes = add(trace->nodes, &build->node_room, &trace->node_count, &node, sizeof node);
    return (uint32_t)trace->node_count - 1;
}

uint32_t build_node(struct build_trace *build, uint32_t parent, enum qut_trace_class class_, unsigned kind_bits,
                    uint32_t module, uint64_t pc)
{
    return put_node(build, (struct trace_node){.parent = parent,
                                               .kind = (uint8_t)((unsigned)class_ << QUT_TRACE_CLASS_SHIFT | kind_bits),
                                               .class_ = (uint8_t)class_,
                                               .module = module,
                                               .pc = pc});
}

static uint32_t named_node(struct build_trace *build, uint32_t parent, enum qut_trace_class class_, const char *name,
                           uint64_t pc)
{
    uint32_t node = build_node(build, parent, class_, 0, TRACE_NONE, pc);
    build->trace->nodes[node].label = name;
    return node;
}

uint32_t build_label(struct build_trace *build, uint32_t parent, const char *name)
{
    return named_node(build, parent, QUT_TRACE_CLASS_LABEL, name, 0);
}

uint32_t build_end_node(struct build_trace *build, uint32_t code, const char *why)
{
    return named_node(build, 0, QUT_TRACE_CLASS_END, why, code);
}

struct trace_thread *build_thread(struct build_trace *build, uint32_t tid, const char *name, uint64_t start_ns,
                                  uint64_t end_ns)
{
    struct trace *trace = build->trace;
    struct trace_thread thread = {.uid = (uint32_t)trace->thread_count + 1,
                                  .tid = tid,
                                  .start_ns = start_ns,
                                  .end_ns = end_ns,
                                  .first_sample = trace->sample_count,
                                  .first_mark = trace->mark_count,
                                  .first_gap = trace->gap_count};
    strncpy(thread.name, name, sizeof thread.name - 1);
    trace->threads = add(trace->threads, &build->thread_room, &trace->thread_count, &thread, sizeof thread);
    return &trace->threads[trace->thread_count - 1];
}

static struct trace_thread *last_thread(const struct build_trace *build)
{
    return &build->trace->threads[build->trace->thread_count - 1];
}

struct trace_sample *build_sample(struct build_trace *build, struct trace_sample sample)
{
    struct trace *trace = build->trace;
    sample.first_extra = (uint32_t)trace->extra_count;
    sample.extra_count = 0;
    sample.metrics = TRACE_NONE;
    trace->samples = add(trace->samples, &build->sample_room, &trace->sample_count, &sample, sizeof sample);
    last_thread(build)->sample_count++;
    return &trace->samples[trace->sample_count - 1];
}

void build_extra(struct build_trace *build, uint32_t key, uint64_t value)
{
    struct trace *trace = build->trace;
    struct trace_extra extra = {.key = key, .value = value};
    trace->extras = add(trace->extras, &build->extra_room, &trace->extra_count, &extra, sizeof extra);
    trace->samples[trace->sample_count - 1].extra_count++;
}

void build_metrics(struct build_trace *build, const uint64_t values[QUT_TRACE_METRIC_COUNT])
{
    struct trace *trace = build->trace;
    trace->samples[trace->sample_count - 1].metrics = (uint32_t)trace->metrics_count;
    trace->metrics = add(trace->metrics, &build->metrics_room, &trace->metrics_count, values, sizeof trace->metrics[0]);
}

void build_mark(struct build_trace *build, uint32_t kind, uint64_t time_ns, uint64_t id, const char *name)
{
    struct trace *trace = build->trace;
    struct trace_mark mark = {.time_ns = time_ns, .id = id, .name = name, .kind = kind};
    trace->marks = add(trace->marks, &build->mark_room, &trace->mark_count, &mark, sizeof mark);
    last_thread(build)->mark_count++;
    last_thread(build)->counts.marks++;
}

void build_gap(struct build_trace *build, uint32_t reason, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
    struct trace *trace = build->trace;
    struct trace_gap gap = {.from_ns = from_ns, .to_ns = to_ns, .lost = lost, .reason = reason};
    trace->gaps = add(trace->gaps, &build->gap_room, &trace->gap_count, &gap, sizeof gap);
    last_thread(build)->gap_count++;
}

static void add_counts(struct qut_trace_counts *sum, const struct qut_trace_counts *counts)
{
    sum->hits += counts->hits;
    sum->throttled += counts->throttled;
    sum->marks += counts->marks;
    sum->lost_marks += counts->lost_marks;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum->lost[i] += counts->lost[i];
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        sum->cut[i] += counts->cut[i];
}

// stored, merged: what is there is added to what was overwritten.
static void sum_thread(struct trace *trace, struct trace_thread *thread)
{
    trace->overwritten_samples += thread->stored + thread->merged;
    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        thread->stored++;
        thread->merged += sample->count - 1;
        trace->present_samples += sample->count;
    }
    struct qut_trace_counts *counts = &thread->counts;
    counts->hits = thread->stored + thread->merged + counts->throttled + thread->under_way;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        counts->hits += counts->lost[i];
    add_counts(&trace->counts, counts);
    trace->stored += thread->stored;
    trace->merged += thread->merged;
    trace->under_way += thread->under_way;
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        trace->totals[i] += thread->totals[i];
}

void build_end(struct build_trace *build)
{
    for (size_t i = 0; i < build->trace->thread_count; i++)
        sum_thread(build->trace, &build->trace->threads[i]);
}

void build_free(struct trace *trace)
{
    free(trace->modules);
    free(trace->nodes);
    free(trace->threads);
    free(trace->samples);
    free(trace->extras);
    free(trace->metrics);
    free(trace->marks);
    free(trace->gaps);
    *trace = (struct trace){0};
}
