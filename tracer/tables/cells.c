// SPDX-License-Identifier: Apache-2.0
// Rows and cells, made of the trace when they are asked for. The columns' order is that of schema.c.
#include <stdlib.h>

#include "tracer/analysis/agent_frames.h"
#include "tracer/info/info.h"
#include "tracer/tables/inside.h"

enum {
    TRACES_TRACE,
    TRACES_HOST,
    TRACES_VERSION,
    TRACES_FILE,
    TRACES_PID,
    TRACES_COMMAND,
    TRACES_ARCH,
    TRACES_KIND,
    TRACES_START,
    TRACES_END,
    TRACES_MONOTONIC,
    TRACES_COMPLETE,
    TRACES_HITS,
    TRACES_STORED,
    TRACES_MERGED,
    TRACES_THROTTLED,
    TRACES_LOST,
    TRACES_UNDER_WAY,
    TRACES_PRESENT,
    TRACES_OVERWRITTEN,
    TRACES_DAMAGED,
    TRACES_RECORDS,
};

enum {
    SAMPLES_TRACE,
    SAMPLES_STACK,
    SAMPLES_PID,
    SAMPLES_TID,
    SAMPLES_THREAD,
    SAMPLES_TIME,
    SAMPLES_SPAN,
    SAMPLES_KIND,
    SAMPLES_EVENT,
    SAMPLES_COUNT,
    SAMPLES_CPU,
    SAMPLES_WALL,
    SAMPLES_BLOCKED,
    SAMPLES_BYTES,
    SAMPLES_ALLOCATIONS,
    SAMPLES_FAULTS,
    SAMPLES_DURATION,
    SAMPLES_LOCK,
    SAMPLES_OWNER,
    SAMPLES_WAKER,
    SAMPLES_FLOW,
    SAMPLES_SIZE,
    SAMPLES_FD,
    SAMPLES_BEGINS,
    SAMPLES_OPEN,
    SAMPLES_CUT,
    SAMPLES_OWN,
};

enum { STACKS_TRACE, STACKS_STACK, STACKS_DEPTH, STACKS_FRAME, STACKS_REPEATED };

enum {
    FRAMES_TRACE,
    FRAMES_FRAME,
    FRAMES_FUNCTION,
    FRAMES_MODULE,
    FRAMES_PATH,
    FRAMES_BUILD_ID,
    FRAMES_ADDRESS,
    FRAMES_TYPE,
    FRAMES_SOURCE,
    FRAMES_LINE,
    FRAMES_INLINED,
    FRAMES_KNOWN,
};

// ---- rows

uint64_t tables_row_count(const struct tables *tables, enum tables_table table)
{
    switch (table) {
    case TABLES_TRACES: return 1;
    case TABLES_SAMPLES: return tables->selection.trace.sample_count;
    case TABLES_STACKS: return tables->first_row[tables->stack_count];
    default: return tables->frames.count;
    }
}

// The last i of 0..count-1 with first[i] <= number.
static size_t last_before(const uint64_t *first, size_t count, uint64_t number)
{
    size_t low = 0, high = count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(first[middle] <= number ? &low : &high) = middle;
    }
    return low;
}

static uint32_t thread_of(const struct trace *trace, uint64_t sample)
{
    size_t low = 0, high = trace->thread_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(trace->threads[middle].first_sample <= sample ? &low : &high) = middle;
    }
    return (uint32_t)low;
}

static void to_outer(const struct tables *tables, struct tables_row *row)
{
    row->depth++;
    if (++row->inlined < tables_name_count(tables, row->node))
        return;
    row->inlined = 0;
    row->node = tables->selection.trace.nodes[row->node].parent;
}

struct tables_row tables_row_at(const struct tables *tables, enum tables_table table, uint64_t number)
{
    struct tables_row row = {.table = table, .number = number, .item = number};
    if (table == TABLES_SAMPLES)
        row.thread = thread_of(&tables->selection.trace, number);
    if (table == TABLES_STACKS) {
        row.stack = (uint32_t)last_before(tables->first_row, tables->stack_count, number);
        row.node = tables->stacks[row.stack].node;
        while (row.depth < number - tables->first_row[row.stack])
            to_outer(tables, &row);
    }
    return row;
}

void tables_row_next(const struct tables *tables, struct tables_row *row)
{
    const struct trace *trace = &tables->selection.trace;
    row->item = ++row->number;
    if (row->table == TABLES_SAMPLES)
        while (row->thread + 1 < trace->thread_count && trace->threads[row->thread + 1].first_sample <= row->item)
            row->thread++;
    if (row->table != TABLES_STACKS)
        return;
    to_outer(tables, row);
    if (row->number == tables->first_row[row->stack + 1] && ++row->stack < tables->stack_count) {
        row->node = tables->stacks[row->stack].node;
        row->inlined = row->depth = 0;
    }
}

uint64_t tables_stack_rows(const struct tables *tables, int64_t stack, uint64_t *count)
{
    size_t low = 0, high = tables->stack_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(tables->by_number[middle].number <= stack ? &low : &high) = middle;
    }
    const bool is_there = high && tables->by_number[low].number == stack;
    const uint64_t *first = &tables->first_row[is_there ? tables->by_number[low].stack : 0];
    *count = is_there ? first[1] - first[0] : 0;
    return is_there ? first[0] : 0;
}

const uint32_t *tables_samples_by_stack(struct tables *tables)
{
    const struct trace *trace = &tables->selection.trace;
    if (tables->by_stack)
        return tables->by_stack;
    uint32_t *by_stack = malloc((trace->sample_count + 1) * sizeof *by_stack);
    uint32_t *rank = calloc(tables->stack_count + 1, sizeof *rank); // of stack_of: its place among numbers
    size_t *first = calloc(tables->stack_count + 2, sizeof *first);
    if (by_stack && rank && first) {
        for (uint32_t i = 0; i < tables->stack_count; i++)
            rank[tables->by_number[i].stack + 1] = i + 1;
        for (size_t i = 0; i < trace->sample_count; i++)
            first[rank[tables->stack_of[trace->samples[i].node]] + 1]++;
        for (size_t i = 0; i < tables->stack_count; i++)
            first[i + 1] += first[i];
        for (size_t i = 0; i < trace->sample_count; i++)
            by_stack[first[rank[tables->stack_of[trace->samples[i].node]]]++] = (uint32_t)i;
        tables->by_stack = by_stack;
    } else {
        free(by_stack);
    }
    free(rank);
    free(first);
    return tables->by_stack;
}

void tables_prefetch_sample(const struct tables *tables, uint32_t number)
{
    __builtin_prefetch(&tables->selection.trace.samples[number]);
    __builtin_prefetch(tables->selection.weights[number]);
}

// ---- traces

static uint64_t sum_of(const uint64_t *values, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static uint64_t traces_number(const struct trace *trace, unsigned column)
{
    switch (column) {
    case TRACES_PID: return trace->pid;
    case TRACES_START: return trace->realtime_ns;
    case TRACES_END: return trace->realtime_ns + (trace->end_ns - trace->start_ns);
    case TRACES_MONOTONIC: return trace->start_ns;
    case TRACES_COMPLETE: return trace->is_complete;
    case TRACES_HITS: return trace->counts.hits;
    case TRACES_STORED: return trace->stored;
    case TRACES_MERGED: return trace->merged;
    case TRACES_THROTTLED: return trace->counts.throttled;
    case TRACES_LOST: return sum_of(trace->counts.lost, QUT_TRACE_LOST_COUNT);
    case TRACES_UNDER_WAY: return trace->under_way;
    case TRACES_PRESENT: return trace->present_samples;
    case TRACES_OVERWRITTEN: return trace->overwritten_samples;
    case TRACES_DAMAGED: return trace->damaged_samples;
    case TRACES_RECORDS: return trace->sample_count;
    default: return 0;
    }
}

static const char *traces_text(const struct tables *tables, unsigned column)
{
    switch (column) {
    case TRACES_HOST: return tables->host;
    case TRACES_VERSION: return tables->version;
    case TRACES_FILE: return tables->path;
    case TRACES_COMMAND: return tables->command;
    case TRACES_ARCH: return info_arch_name(tables->whole->arch);
    default: return analysis_kind_name(analysis_main_kind(tables->whole));
    }
}

// ---- samples

static uint64_t extra_of(const struct trace *trace, const struct trace_sample *sample, uint32_t key)
{
    uint64_t value;
    return sample->extra_count && trace_extra(trace, sample, key, &value) ? value : 0;
}

static int64_t fd_of(const struct trace *trace, const struct trace_sample *sample)
{
    uint64_t value;
    return sample->extra_count && trace_extra(trace, sample, QUT_TRACE_EXTRA_FD, &value) ? (int32_t)value : -1;
}

static int64_t stack_number(const struct tables *tables, uint32_t node)
{
    const uint32_t stack = tables->stack_of[node];
    return stack ? tables->stacks[stack - 1].number : 0;
}

static int64_t samples_number(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    const struct trace *trace = &tables->selection.trace;
    const struct trace_sample *sample = &trace->samples[row->item];
    const uint64_t *weights = tables->selection.weights[row->item];
    switch (column) {
    case SAMPLES_STACK: return stack_number(tables, sample->node);
    case SAMPLES_PID: return (int32_t)tables->threads[row->thread].pid;
    case SAMPLES_TID: return (int32_t)tables->threads[row->thread].tid;
    case SAMPLES_TIME: return (int64_t)(trace->realtime_ns + (sample->first_ns - trace->start_ns));
    case SAMPLES_SPAN: return (int64_t)(sample->last_ns - sample->first_ns);
    case SAMPLES_COUNT: return sample->count;
    case SAMPLES_CPU: return (int64_t)weights[MEASURE_CPU];
    case SAMPLES_WALL: return (int64_t)weights[MEASURE_WALL];
    case SAMPLES_BLOCKED: return (int64_t)weights[MEASURE_BLOCKED];
    case SAMPLES_BYTES: return (int64_t)weights[MEASURE_BYTES];
    case SAMPLES_ALLOCATIONS: return (int64_t)weights[MEASURE_ALLOCATIONS];
    case SAMPLES_FAULTS: return (int64_t)weights[MEASURE_FAULTS];
    case SAMPLES_DURATION: return (int64_t)extra_of(trace, sample, QUT_TRACE_EXTRA_DURATION_NS);
    case SAMPLES_LOCK: return (int64_t)extra_of(trace, sample, QUT_TRACE_EXTRA_LOCK);
    case SAMPLES_OWNER: return (int32_t)extra_of(trace, sample, QUT_TRACE_EXTRA_OWNER_TID);
    case SAMPLES_WAKER: return (int32_t)extra_of(trace, sample, QUT_TRACE_EXTRA_WAKER_TID);
    case SAMPLES_FLOW: return (int64_t)extra_of(trace, sample, QUT_TRACE_EXTRA_FLOW);
    case SAMPLES_SIZE: return (int64_t)extra_of(trace, sample, QUT_TRACE_EXTRA_SIZE);
    case SAMPLES_FD: return fd_of(trace, sample);
    case SAMPLES_BEGINS: return (sample->flags & QUT_TRACE_SAMPLE_BEGINS) != 0;
    case SAMPLES_OPEN: return sample->is_open;
    case SAMPLES_CUT: return (sample->flags & QUT_TRACE_SAMPLE_CUT) != 0;
    case SAMPLES_OWN: return trace_sample_is_tick(sample) && tables->is_own[sample->node];
    default: return 0;
    }
}

static void put_equal(int64_t value, size_t count, int64_t *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = value;
}

// Of many rows of a column that is worth a loop of its own. False: it is none.
static bool samples_numbers(const struct tables *tables, unsigned column, uint64_t first, size_t count, int64_t *to)
{
    const struct trace *trace = &tables->selection.trace;
    const struct trace_sample *samples = trace->samples + first;
    const uint64_t(*weights)[MEASURE_COUNT] = (const uint64_t(*)[MEASURE_COUNT])(tables->selection.weights + first);
    static const uint8_t measures[] = {[SAMPLES_CPU] = MEASURE_CPU,
                                       [SAMPLES_WALL] = MEASURE_WALL,
                                       [SAMPLES_BLOCKED] = MEASURE_BLOCKED,
                                       [SAMPLES_BYTES] = MEASURE_BYTES,
                                       [SAMPLES_ALLOCATIONS] = MEASURE_ALLOCATIONS,
                                       [SAMPLES_FAULTS] = MEASURE_FAULTS};
    if (column >= SAMPLES_CPU && column <= SAMPLES_FAULTS) {
        for (size_t i = 0; i < count; i++)
            to[i] = (int64_t)weights[i][measures[column]];
    } else if (column >= SAMPLES_DURATION && column <= SAMPLES_FD && trace->extra_count == 0) {
        put_equal(column == SAMPLES_FD ? -1 : 0, count, to);
    } else if (column == SAMPLES_STACK) {
        for (size_t i = 0; i < count; i++)
            to[i] = stack_number(tables, samples[i].node);
    } else if (column == SAMPLES_TIME) {
        for (size_t i = 0; i < count; i++)
            to[i] = (int64_t)(trace->realtime_ns + (samples[i].first_ns - trace->start_ns));
    } else {
        return false;
    }
    return true;
}

static const char *samples_text(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    const struct trace_sample *sample = &tables->selection.trace.samples[row->item];
    switch (column) {
    case SAMPLES_THREAD: return tables->threads[row->thread].name;
    case SAMPLES_KIND: return analysis_kind_name(analysis_kind_of(sample->kind));
    default: return tables->kind_names[sample->kind < TABLES_KINDS ? sample->kind : TABLES_KINDS];
    }
}

// ---- frames

uint64_t tables_frame_address(const struct tables *tables, uint64_t frame)
{
    const struct trace_node *node = &tables->selection.trace.nodes[tables->frames.items[frame].node];
    return node->label ? 0 : node->pc;
}

static int64_t frames_number(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    const struct tables_frame *frame = &tables->frames.items[row->item];
    const struct name *name = names_at(tables->names, frame->node, frame->inlined);
    switch (column) {
    case FRAMES_FRAME: return (int64_t)row->item;
    case FRAMES_ADDRESS: return (int64_t)tables_frame_address(tables, row->item);
    case FRAMES_LINE: return (int32_t)name->line;
    case FRAMES_INLINED: return name->is_inlined;
    case FRAMES_KNOWN: return name->is_known;
    default: return 0;
    }
}

static const char *frames_text(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    const struct tables_frame *frame = &tables->frames.items[row->item];
    switch (column) {
    case FRAMES_FUNCTION: return frame->function;
    case FRAMES_MODULE: return frame->module;
    case FRAMES_PATH: return frame->path;
    case FRAMES_BUILD_ID: return frame->build_id;
    case FRAMES_SOURCE: return frame->file;
    default: return info_class_name(tables->selection.trace.nodes[frame->node].class_);
    }
}

// ---- all

int64_t tables_number(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    if (column == TABLES_TRACE)
        return tables->id;
    if (row->table == TABLES_TRACES)
        return (int64_t)traces_number(tables->whole, column);
    if (row->table == TABLES_SAMPLES)
        return samples_number(tables, row, column);
    if (row->table == TABLES_FRAMES)
        return frames_number(tables, row, column);
    const uint32_t place = tables->places[tables->first_place[row->node] + row->inlined];
    switch (column) {
    case STACKS_STACK: return tables->stacks[row->stack].number;
    case STACKS_DEPTH: return row->depth;
    case STACKS_FRAME: return place & ~TABLES_REPEATED;
    case STACKS_REPEATED: return (place & TABLES_REPEATED) != 0;
    default: return 0;
    }
}

void tables_numbers(const struct tables *tables, enum tables_table table, unsigned column, uint64_t first, size_t count,
                    int64_t *to)
{
    if (column == TABLES_TRACE) {
        put_equal(tables->id, count, to);
        return;
    }
    if (table == TABLES_SAMPLES && samples_numbers(tables, column, first, count, to))
        return;
    struct tables_row row = tables_row_at(tables, table, first);
    for (size_t i = 0; i < count; i++) {
        to[i] = tables_number(tables, &row, column);
        tables_row_next(tables, &row);
    }
}

const char *tables_text(const struct tables *tables, const struct tables_row *row, unsigned column)
{
    const unsigned count = tables_schemas[row->table].column_count;
    if (column + 2 >= count) // the last two of each table
        return column + 2 == count ? tables->date : tables->service;
    if (row->table == TABLES_TRACES)
        return traces_text(tables, column);
    return row->table == TABLES_SAMPLES ? samples_text(tables, row, column) : frames_text(tables, row, column);
}
