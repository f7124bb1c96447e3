// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/writer_counts.h"

#include "tracer/trace/raw_trace.h"

static void add_counts(struct record_counts *sum, const struct qut_trace_counts *more)
{
    sum->hits += more->hits + more->passed;
    sum->throttled += more->throttled + more->passed;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum->lost[i] += more->lost[i];
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        sum->cut[i] += more->cut[i];
}

static void add_thread(struct record_counts *sum, const struct qut_trace_file_thread *thread)
{
    sum->threads_live += thread->state == QUT_TRACE_THREAD_LIVE;
    for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++) {
        const struct qut_trace_file_writer *writer = &thread->writers[level];
        add_counts(sum, &writer->counts);
        sum->stored += writer->commit.stored;
        sum->merged += writer->commit.merged;
    }
}

static struct record_counts sum_of(const struct image *image)
{
    struct record_counts sum = {.threads_seen = image->header.thread_uid_next ? image->header.thread_uid_next - 1 : 0};
    const struct qut_trace_retired *retired = trace_segment_retired(&image->counters);
    add_counts(&sum, &image->counters.unowned);
    add_counts(&sum, &retired->counts);
    sum.stored += retired->stored;
    sum.merged += retired->merged;
    const struct qut_trace_file_thread *threads = image->threads.items;
    for (size_t i = 0; i < image->threads.count; i++)
        add_thread(&sum, &threads[i]);
    uint64_t told = sum.stored + sum.merged + sum.throttled + record_counts_lost(&sum);
    sum.under_way = sum.hits > told ? sum.hits - told : 0;
    return sum;
}

bool record_counts_of(const struct trace_segment_view *view, struct record_counts *counts)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return false;
    struct image image = trace_image_new(memory);
    bool is_read = trace_image_of_states(&image, view, NULL) == 0;
    if (is_read) {
        *counts = sum_of(&image);
        counts->overwritten = view->header.mode == QUT_TRACE_OVERWRITE ? trace_segment_overwritten(view, false) : 0;
    }
    trace_memory_free(memory);
    return is_read;
}

void record_counts_add(struct record_counts *sum, const struct record_counts *more)
{
    // All of them are counts.
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

uint64_t record_counts_lost(const struct record_counts *counts)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        lost += counts->lost[i];
    return lost;
}
