// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/columns.h"

#include <stdio.h>

#include "tracer/analysis/weights.h"

struct bytes *report_columns_add(struct columns *columns, const char *name)
{
    struct column *column = &columns->columns[columns->count++];
    snprintf(column->name, sizeof column->name, "%s", name);
    return &column->bytes;
}

unsigned report_columns_time_shift(const struct trace *trace)
{
    uint64_t used = trace->end_ns - trace->start_ns;
    for (size_t i = 0; i < trace->sample_count; i++)
        used |= (trace->samples[i].first_ns - trace->start_ns) | (trace->samples[i].last_ns - trace->start_ns);
    for (size_t i = 0; i < trace->mark_count; i++)
        used |= trace->marks[i].time_ns - trace->start_ns;
    for (size_t i = 0; i < trace->gap_count; i++)
        used |= (trace->gaps[i].from_ns - trace->start_ns) | (trace->gaps[i].to_ns - trace->start_ns);
    unsigned shift = 0;
    while (shift < 20 && used != 0 && !(used >> shift & 1))
        shift++;
    return shift;
}

// NULL where there are none in the whole trace.
static const struct trace_sample *samples_of(const struct trace *trace, size_t thread)
{
    return trace->sample_count ? &trace->samples[trace->threads[thread].first_sample] : NULL;
}

uint64_t report_columns_units_since_start(const struct columns *columns, const struct trace *trace, uint64_t time_ns)
{
    return time_ns > trace->start_ns ? (time_ns - trace->start_ns) >> columns->time_shift : 0;
}

// The difference of two times, in units: both are whole ones from the trace's beginning on.
static int64_t units(const struct columns *columns, uint64_t from_ns, uint64_t to_ns)
{
    return (int64_t)(to_ns - from_ns) / (INT64_C(1) << columns->time_shift);
}

// A wait that began and did not end carries no word on whether its thread ran: analysis_is_blocking tells it by the
// kind, here once for all that reads the page.
static uint8_t flags_of(const struct trace *trace, const struct trace_sample *sample)
{
    unsigned flags = sample->flags & (COLUMN_FLAG_TOLD - 1u);
    if (analysis_cpu_is_told(trace, sample))
        flags |= COLUMN_FLAG_TOLD;
    if (sample->is_open)
        flags |= COLUMN_FLAG_OPEN | (analysis_is_blocking(sample) ? QUT_TRACE_SAMPLE_OFF_CPU : 0u);
    return (uint8_t)flags;
}

void report_columns_of_samples(struct columns *columns, const struct selection *selection,
                               const struct report_frames *frames)
{
    const struct trace *trace = &selection->trace;
    struct bytes *time = report_columns_add(columns, "sample_time");
    struct bytes *count = report_columns_add(columns, "sample_count");
    struct bytes *span = report_columns_add(columns, "sample_span");
    struct bytes *cpu = trace->has_cpu_time ? report_columns_add(columns, "sample_cpu") : NULL;
    struct bytes *stands = trace->has_cpu_time ? report_columns_add(columns, "sample_cpu_stands") : NULL;
    struct bytes *frame = report_columns_add(columns, "sample_frame");
    struct bytes *line = report_columns_add(columns, "sample_line");
    struct bytes *kind = report_columns_add(columns, "sample_kind");
    struct bytes *flags = report_columns_add(columns, "sample_flags");
    struct bytes *level = report_columns_add(columns, "sample_level");
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_sample *samples = samples_of(trace, t);
        uint64_t last_ns = trace->start_ns;
        uint32_t last_frame = 0;
        for (size_t i = 0; i < trace->threads[t].sample_count; i++) {
            const struct trace_sample *sample = &samples[i];
            uint32_t its_frame = frames->of_node[sample->node];
            report_bytes_zigzag(time, units(columns, last_ns, sample->first_ns));
            report_bytes_varint(count, sample->count);
            if (sample->count > 1)
                report_bytes_varint(span, (uint64_t)units(columns, sample->first_ns, sample->last_ns));
            // The first one's processor time is that of before the trace, but for what its own run took.
            if (cpu) {
                int64_t grown =
                    (int64_t)(i == 0 ? analysis_first_run_cpu_ns(sample) : sample->cpu_ns - samples[i - 1].cpu_ns);
                report_bytes_zigzag(cpu, grown);
                report_bytes_zigzag(stands,
                                    (int64_t)selection->weights[&samples[i] - trace->samples][MEASURE_CPU] - grown);
            }
            report_bytes_zigzag(frame, (int64_t)its_frame - last_frame);
            report_bytes_varint(line, frames->line_of_node[sample->node]);
            report_bytes_add(kind, &(uint8_t){(uint8_t)sample->kind}, 1);
            report_bytes_add(flags, &(uint8_t){flags_of(trace, sample)}, 1);
            report_bytes_add(level, &sample->level, 1);
            last_ns = sample->count > 1 ? sample->last_ns : sample->first_ns;
            last_frame = its_frame;
        }
    }
}

static void column_of_metric(struct columns *columns, const struct trace *trace, unsigned metric)
{
    char name[COLUMN_NAME_BYTES];
    snprintf(name, sizeof name, "metric_%u", metric);
    struct bytes *column = report_columns_add(columns, name);
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_sample *samples = samples_of(trace, t);
        uint32_t last = TRACE_NONE;
        for (size_t i = 0; i < trace->threads[t].sample_count; i++) {
            uint32_t row = samples[i].metrics;
            uint64_t growth = 0;
            if (row != TRACE_NONE && last != TRACE_NONE && trace->metrics[row][metric] > trace->metrics[last][metric])
                growth = trace->metrics[row][metric] - trace->metrics[last][metric];
            report_bytes_varint(column, growth);
            if (row != TRACE_NONE)
                last = row;
        }
    }
}

void report_columns_of_metrics(struct columns *columns, const struct trace *trace)
{
    for (unsigned metric = 0; metric < QUT_TRACE_METRIC_COUNT; metric++)
        if (trace->metric_mask >> metric & 1)
            column_of_metric(columns, trace, metric);
}

static size_t name_of_lock(struct columns *columns, struct names_data *data, uint32_t process, uint64_t address)
{
    char text[NAMES_DATA_TEXT_BYTES];
    return base_interner_add(&columns->strings, names_data_at(data, process, address, text));
}

void report_columns_of_extras(struct columns *columns, const struct trace *trace, const struct report_frames *frames,
                              struct names_data *data)
{
    struct bytes *of_sample = report_columns_add(columns, "extra_sample");
    struct bytes *key = report_columns_add(columns, "extra_key");
    struct bytes *low = report_columns_add(columns, "extra_low");
    struct bytes *high = report_columns_add(columns, "extra_high");
    struct bytes *name = report_columns_add(columns, "lock_name");
    // The page numbers samples thread after thread.
    uint64_t index = 0, last = 0;
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_sample *samples = samples_of(trace, t);
        for (size_t i = 0; i < trace->threads[t].sample_count; i++, index++) {
            for (unsigned e = 0; e < samples[i].extra_count; e++) {
                const struct trace_extra *extra = &trace->extras[samples[i].first_extra + e];
                uint64_t value = extra->value;
                // The page knows no nodes.
                if (extra->key == QUT_TRACE_EXTRA_BEGIN_NODE && value < trace->node_count)
                    value = frames->of_node[value];
                else if (extra->key == QUT_TRACE_EXTRA_BEGIN_NODE)
                    continue;
                report_bytes_varint(of_sample, index - last);
                report_bytes_varint(key, extra->key);
                report_bytes_varint(low, (uint32_t)value);
                report_bytes_varint(high, value >> 32);
                if (extra->key == QUT_TRACE_EXTRA_LOCK)
                    report_bytes_varint(name, name_of_lock(columns, data, trace->threads[t].process, value));
                last = index;
            }
        }
    }
}

void report_columns_of_marks(struct columns *columns, const struct trace *trace)
{
    struct bytes *time = report_columns_add(columns, "mark_time");
    struct bytes *kind = report_columns_add(columns, "mark_kind");
    struct bytes *low = report_columns_add(columns, "mark_low");
    struct bytes *high = report_columns_add(columns, "mark_high");
    struct bytes *name = report_columns_add(columns, "mark_name");
    for (size_t t = 0; t < trace->thread_count; t++) {
        uint64_t last_ns = trace->start_ns;
        for (size_t i = 0; i < trace->threads[t].mark_count; i++) {
            const struct trace_mark *mark = &trace->marks[trace->threads[t].first_mark + i];
            report_bytes_zigzag(time, units(columns, last_ns, mark->time_ns));
            report_bytes_varint(kind, mark->kind);
            report_bytes_varint(low, (uint32_t)mark->id);
            report_bytes_varint(high, mark->id >> 32);
            report_bytes_varint(name, base_interner_add(&columns->strings, mark->name));
            last_ns = mark->time_ns;
        }
    }
}

void report_columns_of_gaps(struct columns *columns, const struct trace *trace)
{
    struct bytes *from = report_columns_add(columns, "gap_from");
    struct bytes *length = report_columns_add(columns, "gap_length");
    struct bytes *lost = report_columns_add(columns, "gap_lost");
    struct bytes *reason = report_columns_add(columns, "gap_reason");
    for (size_t t = 0; t < trace->thread_count; t++) {
        uint64_t last_ns = trace->start_ns;
        for (size_t i = 0; i < trace->threads[t].gap_count; i++) {
            const struct trace_gap *gap = &trace->gaps[trace->threads[t].first_gap + i];
            int64_t its_length = units(columns, gap->from_ns, gap->to_ns);
            report_bytes_zigzag(from, units(columns, last_ns, gap->from_ns));
            report_bytes_varint(length, its_length > 0 ? (uint64_t)its_length : 0);
            report_bytes_varint(lost, gap->lost);
            report_bytes_varint(reason, gap->reason);
            last_ns = gap->from_ns;
        }
    }
}
