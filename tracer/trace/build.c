// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/inside.h"

#include <inttypes.h>
#include <string.h>

static int take_header(struct image *image, struct trace *trace, struct base_error *error)
{
    struct qut_trace_header *header = &image->header;
    memcpy(trace->identity, header->identity, sizeof trace->identity);
    trace->arch = header->arch;
    trace->word_bytes = header->word_bytes;
    trace->mode = header->mode;
    trace->has_cpu_time = header->flags & QUT_TRACE_HAS_CPU_TIME;
    trace->pid = header->pid;
    trace->file_bytes = image->file_bytes;
    trace->start_ns = header->start_ns;
    trace->realtime_ns = header->realtime_ns;
    trace->boottime_ns = header->boottime_ns;
    trace->metric_mask = header->metric_mask & ((1u << QUT_TRACE_METRIC_COUNT) - 1);
    header->command[sizeof header->command - 1] = 0;
    trace->command = trace_memory_text(image->memory, "%s", header->command);
    if (!trace->command)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    for (unsigned i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++) {
        const char *name = trace_image_string(image, header->kind_names[i]);
        trace->kind_names[i] = *name ? name : NULL;
    }
    return 0;
}

// Hits of threads without a slot, two counters each: a process that was killed may have come to the first only.
static uint64_t unowned_under_way(const struct qut_trace_counts *unowned)
{
    enum { THREADS_AT_ONCE = 64 };
    uint64_t told = unowned->throttled;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        told += unowned->lost[i];
    uint64_t left = unowned->hits - told;
    return left <= THREADS_AT_ONCE ? left : 0;
}

// To the sums over threads that have a slot.
static void add_up(const struct image *image, struct trace *trace)
{
    const struct qut_trace_counters *counters = &image->counters;
    const struct qut_trace_retired *retired = &counters->retired[counters->retired_version & 1];
    trace_counts_add(&trace->counts, &counters->unowned);
    trace_counts_add(&trace->counts, &retired->counts);
    trace->stored += retired->stored;
    trace->merged += retired->merged;
    trace->under_way += unowned_under_way(&counters->unowned);
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        trace->totals[i] += retired->totals[i];
}

// Where samples are that are not here.
static void account_samples(const struct image *image, struct trace *trace, bool has_damage)
{
    // A file that was not finished has samples that its last counts did not know yet.
    uint64_t told = trace->stored + trace->merged;
    if (image->is_truncated && trace->present_samples > told) {
        trace->stored += trace->present_samples - told;
        trace->counts.hits += trace->present_samples - told;
        told = trace->present_samples;
    }
    uint64_t missing = told > trace->present_samples ? told - trace->present_samples : 0;
    uint64_t damaged = image->damaged_samples_least < missing ? image->damaged_samples_least : missing;
    uint64_t overwritten = missing - damaged;
    if (overwritten < image->overwritten_least)
        overwritten = image->overwritten_least;
    if (overwritten > image->overwritten_most)
        overwritten = image->overwritten_most;
    trace->overwritten_samples = overwritten;
    if (has_damage && missing > overwritten)
        trace->damaged_samples = missing - overwritten;
}

static uint64_t latest_ns(const struct trace *trace)
{
    uint64_t latest = trace->start_ns;
    for (size_t i = 0; i < trace->sample_count; i++)
        if (trace->samples[i].last_ns > latest)
            latest = trace->samples[i].last_ns;
    for (size_t i = 0; i < trace->mark_count; i++)
        if (trace->marks[i].time_ns > latest)
            latest = trace->marks[i].time_ns;
    for (size_t i = 0; i < trace->thread_count; i++)
        if (trace->threads[i].end_ns != UINT64_MAX && trace->threads[i].end_ns > latest)
            latest = trace->threads[i].end_ns;
    return latest;
}

// The only process of a part; its threads and notes are all that there are.
static int make_process(const struct image *image, struct trace *trace, struct base_error *error)
{
    struct trace_process *process = trace_memory_take(image->memory, 1, sizeof *process);
    if (!process)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    trace->processes = process;
    trace->process_count = 1;
    trace->notes = image->notes.items;
    trace->note_count = trace->first_own_note = image->notes.count;
    *process = (struct trace_process){
        .pid = trace->pid,
        .parent_pid = image->header.parent_pid,
        .command = trace->command,
        .arch = trace->arch,
        .word_bytes = trace->word_bytes,
        .mode = trace->mode,
        .end = image->end,
        .has_cpu_time = trace->has_cpu_time,
        .is_complete = trace->is_complete,
        .metric_mask = trace->metric_mask,
        .start_ns = trace->start_ns,
        .end_ns = trace->end_ns,
        .counts = trace->counts,
        .stored = trace->stored,
        .merged = trace->merged,
        .under_way = trace->under_way,
        .present_samples = trace->present_samples,
        .overwritten_samples = trace->overwritten_samples,
        .damaged_samples = trace->damaged_samples,
        .thread_count = trace->thread_count,
        .note_count = trace->note_count,
    };
    memcpy(process->identity, trace->identity, sizeof process->identity);
    memcpy(process->totals, trace->totals, sizeof process->totals);
    // What the segment has no room for, or cannot know.
    uint64_t parent_pid;
    if (!process->parent_pid && trace_note_number(trace, 0, "parent-pid", &parent_pid))
        process->parent_pid = (uint32_t)parent_pid;
    for (size_t i = 0; i < trace->note_count; i++)
        if (trace->notes[i].text && strcmp(trace->notes[i].name, "command") == 0)
            process->command = trace->command = trace->notes[i].text;
    return 0;
}

static void check_balance(struct image *image, struct trace *trace)
{
    struct trace_balance balance = trace_balance(trace);
    if (!balance.hits_missing && !balance.samples_missing)
        return;
    trace_image_damage(image, "the counts do not add up: %" PRId64 " hits and %" PRId64 " samples are missing",
                       balance.hits_missing, balance.samples_missing);
    image->is_complete = false;
}

static void check_nodes(struct image *image, const struct node_map *nodes)
{
    if (!nodes->damaged_count)
        return;
    trace_image_damage(image, "%" PRIu64 " frames, or samples' places among them, cannot be read",
                       nodes->damaged_count);
    image->is_complete = false;
}

int trace_build(struct image *image, struct trace *trace, struct base_error *error)
{
    struct places places;
    struct node_map nodes;
    if (take_header(image, trace, error) != 0 || trace_build_modules(image, trace, &places, error) != 0 ||
        trace_build_nodes(image, &places, &nodes, error) != 0)
        return -1;
    trace->end_ns = image->header.state == QUT_TRACE_CLOSED ? image->header.closed_ns : 0;
    if (trace_build_threads(image, trace, &nodes, error) != 0)
        return -1;
    trace->nodes = nodes.nodes.items;
    trace->node_count = nodes.nodes.count;
    if (!trace->end_ns)
        trace->end_ns = latest_ns(trace);
    bool has_damage = image->damaged_chunks || image->damaged_blocks || image->is_truncated || image->may_miss_chunks;
    add_up(image, trace);
    if (!image->part)
        account_samples(image, trace, has_damage);
    if (image->may_miss_chunks && trace->damaged_samples)
        trace_image_damage(image, "%" PRIu64 " samples were taken out by a collector, or could not be written by it",
                           trace->damaged_samples);
    check_nodes(image, &nodes);
    if (!image->part)
        check_balance(image, trace);
    trace->damaged_chunks = image->damaged_chunks;
    trace->damaged_blocks = image->damaged_blocks;
    trace->damages = image->damages.items;
    trace->damage_count = image->damages.count;
    trace->is_complete = image->is_complete && !image->damaged_chunks && !image->damaged_blocks &&
                         !image->is_truncated && !trace->damaged_samples;
    if (!trace_find_open(trace) || image->no_memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
    return make_process(image, trace, error);
}
