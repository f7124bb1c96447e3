// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libqut/segment/segment.h"

struct golden_writer {
    const struct trace *trace;
    struct segment segment;
    uint32_t *nodes;      // by index in trace->nodes
    uint64_t *code_bases; // by index in trace->modules
    uint32_t *modules;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint32_t string(struct golden_writer *writer, const char *text)
{
    return segment_string(&writer->segment, text, strlen(text));
}

static void perfetto_write_head(struct golden_writer *writer)
{
    struct qut_trace_header *header = writer->segment.header;
    const struct trace *trace = writer->trace;
    memcpy(header->identity, trace->identity, sizeof header->identity);
    header->start_ns = trace->start_ns;
    header->realtime_ns = trace->realtime_ns;
    header->boottime_ns = trace->boottime_ns;
    for (unsigned i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++)
        if (trace->kind_names[i])
            header->kind_names[i] = string(writer, trace->kind_names[i]);
}

static void write_modules(struct golden_writer *writer)
{
    for (size_t i = 0; i < writer->trace->module_count; i++) {
        const struct trace_module *from = &writer->trace->modules[i];
        struct qut_trace_module module = {.code_bytes = from->code_bytes,
                                          .start = from->start,
                                          .start_vaddr = from->start_vaddr,
                                          .load_ns = from->load_ns,
                                          .flags = from->flags,
                                          .build_id_bytes = from->build_id_bytes};
        memcpy(module.build_id, from->build_id, from->build_id_bytes);
        int index = segment_module_add(&writer->segment, &module, from->path);
        require(index >= 0);
        writer->modules[i] = (uint32_t)index;
        writer->code_bases[i] = writer->segment.modules[index].code_base;
    }
}

static uint64_t code_of(struct golden_writer *writer, const struct trace_node *node)
{
    const struct trace_module *module = node->module == TRACE_NONE ? NULL : &writer->trace->modules[node->module];
    switch (node->class_) {
    case QUT_TRACE_CLASS_CODE:
    case QUT_TRACE_CLASS_SIGNAL: return node->pc - module->start_vaddr + writer->code_bases[node->module];
    case QUT_TRACE_CLASS_JIT:
    case QUT_TRACE_CLASS_DEX: return segment_raw(&writer->segment, node->pc - module->start_vaddr + module->start);
    case QUT_TRACE_CLASS_LABEL: return string(writer, node->label);
    case QUT_TRACE_CLASS_END: return node->pc;
    default: return segment_raw(&writer->segment, node->pc);
    }
}

static void write_nodes(struct golden_writer *writer)
{
    for (size_t i = 1; i < writer->trace->node_count; i++) {
        const struct trace_node *node = &writer->trace->nodes[i];
        writer->nodes[i] =
            segment_node(&writer->segment, writer->nodes[node->parent], code_of(writer, node), node->kind);
        require(writer->nodes[i] != 0);
    }
}

// One after the other, as they were before they were merged.
static void perfetto_write_sample(struct golden_writer *writer, struct qut_trace_thread *slot,
                                  const struct trace_sample *sample)
{
    const struct trace *trace = writer->trace;
    struct segment_extra extras[QUT_TRACE_EXTRAS_MAX] = {0};
    for (unsigned i = 0; i < sample->extra_count; i++) {
        const struct trace_extra *extra = &trace->extras[sample->first_extra + i];
        bool is_node = extra->key == QUT_TRACE_EXTRA_BEGIN_NODE;
        extras[i] =
            (struct segment_extra){.key = extra->key, .value = is_node ? writer->nodes[extra->value] : extra->value};
    }
    uint64_t steps = sample->count > 1 ? sample->count - 1 : 1;
    for (uint64_t i = 0; i < sample->count; i++) {
        const struct segment_sample written = {
            .time_ns = sample->first_ns + (sample->last_ns - sample->first_ns) * i / steps,
            .cpu_ns = sample->cpu_ns - (sample->last_ns - sample->first_ns) / 2 * (sample->count - 1 - i) / steps,
            .node = writer->nodes[sample->node],
            .kind = sample->kind,
            .flags = sample->flags,
            .metrics = sample->metrics == TRACE_NONE ? NULL : trace->metrics[sample->metrics],
            .extras = extras,
            .extra_count = sample->extra_count};
        struct qut_trace_writer *level = NULL;
        for (unsigned depth = 0; depth <= sample->level; depth++)
            level = segment_begin(slot, 0, 0, 0);
        require(level && segment_append(&writer->segment, slot, level, &written) >= 0);
        for (unsigned depth = 0; depth <= sample->level; depth++)
            segment_end_of(slot);
    }
}

static void write_mark(struct golden_writer *writer, struct qut_trace_thread *slot, const struct trace_mark *mark)
{
    struct qut_trace_writer *level = segment_begin(slot, 0, 0, 0);
    require(segment_mark(&writer->segment, slot, level, mark->time_ns, mark->kind, mark->id,
                         string(writer, mark->name)) >= 0);
    segment_end_of(slot);
}

static void write_counts(const struct trace_thread *thread, struct qut_trace_thread *slot, unsigned depth)
{
    struct qut_trace_writer *level = NULL;
    for (unsigned i = 0; i <= depth; i++)
        level = segment_begin(slot, 0, 0, 0);
    for (uint64_t i = 0; i < thread->counts.throttled; i++)
        segment_skip(level);
    for (unsigned reason = 0; reason < QUT_TRACE_LOST_COUNT; reason++)
        for (uint64_t i = 0; i < thread->counts.lost[reason]; i++)
            segment_lose(level, (enum qut_trace_lost)reason);
    for (unsigned reason = 0; reason < QUT_TRACE_CUT_COUNT; reason++)
        for (uint64_t i = 0; i < thread->counts.cut[reason]; i++)
            segment_cut(level, (enum qut_trace_cut)reason);
    for (unsigned total = 0; total < QUT_TRACE_TOTAL_COUNT; total++)
        if (thread->totals[total])
            segment_add(level, total, thread->totals[total]);
    for (unsigned i = 0; i <= depth; i++)
        segment_end_of(slot);
}

// Samples and marks in the order of their time; hits are lost where the first gap is, at the level of what follows.
static void perfetto_write_thread(struct golden_writer *writer, const struct trace_thread *thread)
{
    const struct trace *trace = writer->trace;
    struct qut_trace_thread *slot = segment_thread_begin(&writer->segment, thread->tid, thread->name, thread->start_ns);
    require(slot != NULL);
    const struct trace_mark *mark = trace->marks + thread->first_mark, *last_mark = mark + thread->mark_count;
    uint64_t gap_ns = thread->gap_count ? trace->gaps[thread->first_gap].from_ns : 0;
    bool is_counted = false;
    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        for (; mark < last_mark && mark->time_ns < sample->first_ns; mark++)
            write_mark(writer, slot, mark);
        if (!is_counted && sample->first_ns >= gap_ns) {
            write_counts(thread, slot, sample->level);
            is_counted = true;
        }
        perfetto_write_sample(writer, slot, sample);
    }
    for (; mark < last_mark; mark++)
        write_mark(writer, slot, mark);
    if (!is_counted)
        write_counts(thread, slot, 0);
    if (thread->end_ns != UINT64_MAX)
        segment_thread_end(&writer->segment, slot, thread->end_ns);
}

static void close_at(struct golden_writer *writer, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    segment_close(&writer->segment);
    const uint64_t closed_ns = writer->trace->end_ns;
    require(fd >= 0 && pwrite(fd, &closed_ns, sizeof closed_ns, offsetof(struct qut_trace_header, closed_ns)) ==
                           (ssize_t)sizeof closed_ns);
    close(fd);
}

// Room for all of it: nothing may be overwritten. Of a segment a quarter is for nodes, which take 8 bytes each and room
// to be found.
static uint64_t bytes_for(const struct trace *trace)
{
    enum { LEAST_BYTES = 4 << 20, NODE_BYTES = 4 * 16, SAMPLE_BYTES = 24 };
    const uint64_t bytes = (uint64_t)NODE_BYTES * trace->node_count + (uint64_t)SAMPLE_BYTES * trace->sample_count;
    return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

int golden_write(const struct trace *trace, const char *path, bool closes)
{
    struct golden_writer writer = {.trace = trace,
                                   .nodes = calloc(trace->node_count, sizeof *writer.nodes),
                                   .modules = calloc(trace->module_count + 1, sizeof *writer.modules),
                                   .code_bases = calloc(trace->module_count + 1, sizeof *writer.code_bases)};
    require(writer.nodes && writer.modules && writer.code_bases);
    const struct segment_options options = {.segment_bytes = bytes_for(trace),
                                            .path = path,
                                            .mode = trace->mode,
                                            .flags = trace->has_cpu_time ? QUT_TRACE_HAS_CPU_TIME : 0,
                                            .metric_mask = trace->metric_mask,
                                            .merge_gap_ns = GOLDEN_MERGE_GAP_NS,
                                            .pid = trace->pid,
                                            .arch = trace->arch,
                                            .word_bytes = trace->word_bytes,
                                            .command = trace->command};
    int status = segment_create(&writer.segment, &options);
    if (status == 0) {
        perfetto_write_head(&writer);
        write_modules(&writer);
        write_nodes(&writer);
        for (size_t i = 0; i < trace->thread_count; i++)
            perfetto_write_thread(&writer, &trace->threads[i]);
        for (uint64_t i = 0; i < trace->counts.lost[QUT_TRACE_LOST_THREADS]; i++)
            segment_lose_unowned(&writer.segment, QUT_TRACE_LOST_THREADS);
        for (size_t i = 0; i < trace->module_count; i++)
            if (trace->modules[i].unload_ns != UINT64_MAX)
                segment_module_unloaded(&writer.segment, writer.modules[i], trace->modules[i].unload_ns);
        if (closes)
            close_at(&writer, path);
        else
            segment_unmap(&writer.segment);
    }
    free(writer.nodes);
    free(writer.modules);
    free(writer.code_bases);
    return status;
}
