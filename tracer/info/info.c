// SPDX-License-Identifier: Apache-2.0
#include "tracer/info/info.h"

#include "libqut/arch/arch.h"

const char *info_arch_name(unsigned arch_id)
{
    const struct arch *arch = arch_by_id((enum qut_arch_id)arch_id);
    return arch ? arch->name : "unknown architecture";
}

const char *info_class_name(unsigned class_)
{
    static const char *const names[QUT_TRACE_CLASS_COUNT] = {
        [QUT_TRACE_CLASS_CODE] = "code", [QUT_TRACE_CLASS_SIGNAL] = "signal", [QUT_TRACE_CLASS_RAW] = "address",
        [QUT_TRACE_CLASS_JIT] = "jit",   [QUT_TRACE_CLASS_DEX] = "dex",       [QUT_TRACE_CLASS_LABEL] = "label",
        [QUT_TRACE_CLASS_END] = "end",   [QUT_TRACE_CLASS_KERNEL] = "kernel",
    };
    return class_ < QUT_TRACE_CLASS_COUNT ? names[class_] : "unknown";
}

const char *info_mark_kind_name(unsigned kind)
{
    static const char *const names[] = {"instant", "begin", "end", "counter"};
    return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

struct info info_of(const struct trace *trace, bool is_segment)
{
    struct info info = {.trace = trace, .is_segment = is_segment};
    for (size_t i = 0; i < trace->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[i];
        *(sample->kind < INFO_KINDS ? &info.kinds[sample->kind] : &info.unknown_kinds) += sample->count;
    }
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        info.lost += trace->counts.lost[i];
    for (size_t i = 0; i < trace->mark_count; i++)
        if (trace->marks[i].kind < sizeof info.marks / sizeof *info.marks)
            info.marks[trace->marks[i].kind]++;
    for (size_t i = 1; i < trace->node_count; i++)
        if (trace->nodes[i].class_ < QUT_TRACE_CLASS_COUNT)
            info.frames[trace->nodes[i].class_]++;
    if (trace->end_ns > trace->start_ns)
        info.seconds = (double)(trace->end_ns - trace->start_ns) / 1e9;
    if (trace->present_samples) {
        info.record_bytes_per_sample = (double)trace->chunk_bytes / (double)trace->present_samples;
        if (!is_segment)
            info.file_bytes_per_sample = (double)trace->file_bytes / (double)trace->present_samples;
    }
    return info;
}
