// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/newer/newer.h"

#include <string.h>

#include "tracer/trace/inside.h"

enum { GONE_KEPT = 1024 }; // writers

// What of an image is wanted.
struct newer {
    struct image_part part;
    const struct newer_seen *seen;
    struct newer_seen *now;
    // Of the chunk at hand: where its samples begin, and how many of them were read before.
    size_t first;
    uint64_t skip;
    uint64_t writer; // of the chunk before: uid << 2 | level
};

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

void newer_seen_free(struct newer_seen *seen)
{
    base_vector_free(&seen->vector);
}

static bool is_before(const struct newer_writer *writer, uint32_t uid, uint32_t level)
{
    return writer->uid < uid || (writer->uid == uid && writer->level < level);
}

static const struct newer_writer *find(const struct newer_seen *seen, uint32_t uid, uint32_t level)
{
    size_t low = 0, high = seen->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_before(&seen->items[middle], uid, level))
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_there = low < seen->count && seen->items[low].uid == uid && seen->items[low].level == level;
    return is_there ? &seen->items[low] : NULL;
}

bool newer_seen_add(struct newer_seen *seen, const struct newer_writer *writer)
{
    if (seen->count && !is_before(&seen->items[seen->count - 1], writer->uid, writer->level))
        return false;
    struct newer_writer *place = BASE_ADD(seen);
    if (place)
        *place = *writer;
    return place;
}

static bool leaves_out(const struct image_part *part, uint32_t uid, uint32_t level, uint64_t seq)
{
    const struct newer *newer = (const struct newer *)(const void *)part;
    const struct newer_writer *writer = find(newer->seen, uid, level);
    return writer && seq < writer->seq;
}

// ---- one chunk

// Stands for no sample: what the next one counts from.
static void make_anchor(struct trace_sample *sample)
{
    sample->count = 0;
    sample->extra_count = 0;
    sample->flags &= (uint16_t)~QUT_TRACE_SAMPLE_BEGINS;
}

static bool add_anchor(struct decoder *decoder, const struct qut_trace_chunk *header)
{
    struct trace_sample *sample = trace_vector_add(&decoder->samples);
    if (!sample)
        return false;
    *sample = (struct trace_sample){.kind = header->base_kind & 0xff,
                                    .level = header->level,
                                    .first_ns = header->base_time << decoder->time_shift,
                                    .metrics = TRACE_NONE};
    sample->last_ns = sample->first_ns;
    if (header->flags & QUT_TRACE_HAS_CPU_TIME)
        sample->cpu_ns = header->base_cpu_time << decoder->time_shift;
    make_anchor(sample);
    if (!header->metric_mask)
        return true;
    void *metrics = trace_vector_add(&decoder->metrics);
    if (metrics)
        memcpy(metrics, header->base_metrics, sizeof header->base_metrics);
    sample->metrics = (uint32_t)(decoder->metrics.count - 1);
    return metrics;
}

static bool begin_chunk(struct image_part *part, struct decoder *decoder, const struct chunk_place *place)
{
    struct newer *newer = (struct newer *)(void *)part;
    const struct newer_writer *writer = find(newer->seen, place->uid, place->level);
    newer->first = decoder->samples.count;
    newer->skip = writer && writer->seq == place->seq ? writer->samples : 0;
    // Else one of the samples before is here.
    const uint64_t key = (uint64_t)place->uid << 2 | place->level;
    const bool is_first = newer->writer != key;
    newer->writer = key;
    return !writer || newer->skip || !is_first || add_anchor(decoder, (const void *)place->chunk->bytes);
}

// The part of a run that is new. Its samples are taken to be as far from each other as they were on average.
static void cut_run(struct trace_sample *sample, struct trace_sample *anchor, uint32_t seen)
{
    const uint64_t length_ns = sample->last_ns - sample->first_ns;
    *anchor = *sample;
    anchor->last_ns = sample->first_ns + (uint64_t)((unsigned __int128)length_ns * (seen - 1) / (sample->count - 1));
    sample->first_ns += (uint64_t)((unsigned __int128)length_ns * seen / (sample->count - 1));
    sample->count -= seen;
    anchor->first_ns = anchor->last_ns;
}

static bool end_chunk(struct image_part *part, struct decoder *decoder, const struct chunk_place *place,
                      uint64_t *decoded)
{
    struct newer *newer = (struct newer *)(void *)part;
    const uint64_t all = *decoded > newer->skip ? *decoded : newer->skip;
    struct newer_writer *last = newer->now->count ? &newer->now->items[newer->now->count - 1] : NULL;
    struct trace_sample *samples = decoder->samples.items;
    const struct newer_writer now = {
        .uid = place->uid,
        .level = place->level,
        .seq = place->seq,
        .samples = all,
        .cpu_ns = decoder->samples.count > newer->first ? samples[decoder->samples.count - 1].cpu_ns : 0};
    if (last && last->uid == now.uid && last->level == now.level)
        *last = now; // chunks of a writer come in their order
    else if (!newer_seen_add(newer->now, &now))
        return false;
    if (!newer->skip)
        return true;
    size_t at = newer->first;
    uint64_t skip = newer->skip < *decoded ? newer->skip : *decoded;
    *decoded -= skip;
    while (at < decoder->samples.count && samples[at].count <= skip)
        skip -= samples[at++].count;
    if (at == newer->first && !skip)
        return true;
    // One sample of those that were read before stays, in front of the others.
    struct trace_sample anchor = samples[at > newer->first ? at - 1 : at];
    if (skip && at < decoder->samples.count)
        cut_run(&samples[at], &anchor, (uint32_t)skip);
    anchor.cpu_ns = find(newer->seen, place->uid, place->level)->cpu_ns;
    make_anchor(&anchor);
    if (at == newer->first) {
        if (!trace_vector_add(&decoder->samples))
            return false;
        samples = decoder->samples.items;
        memmove(&samples[at + 1], &samples[at], (decoder->samples.count - at - 1) * sizeof *samples);
    } else {
        const size_t gone = at - newer->first - 1;
        memmove(&samples[newer->first + 1], &samples[at], (decoder->samples.count - at) * sizeof *samples);
        decoder->samples.count -= gone;
    }
    samples[newer->first] = anchor;
    return true;
}

// Of writers that have no chunk here at the moment. Those of threads that are gone are kept as well, up to a number: a
// slot that is changing hands is not seen either.
static bool keep_others(struct newer *newer, const struct image *image)
{
    struct newer_seen all = {.items = NULL};
    const struct qut_trace_file_thread *threads = image->threads.items;
    size_t next = 0;
    bool is_good = true;
    for (size_t i = 0; i < newer->seen->count && is_good; i++) {
        const struct newer_writer *writer = &newer->seen->items[i];
        bool lives = i + GONE_KEPT >= newer->seen->count;
        for (size_t t = 0; t < image->threads.count && !lives; t++)
            lives = threads[t].uid == writer->uid;
        for (; next < newer->now->count && is_good && is_before(&newer->now->items[next], writer->uid, writer->level);)
            is_good = newer_seen_add(&all, &newer->now->items[next++]);
        const bool is_known = next < newer->now->count && newer->now->items[next].uid == writer->uid &&
                              newer->now->items[next].level == writer->level;
        if (lives && !is_known && is_good)
            is_good = newer_seen_add(&all, writer);
    }
    for (; next < newer->now->count && is_good;)
        is_good = newer_seen_add(&all, &newer->now->items[next++]);
    newer_seen_free(newer->now);
    *newer->now = all;
    return is_good;
}

// ---- the whole

static uint64_t sum_lost(const struct qut_trace_counts *counts)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum += counts->lost[i];
    return sum;
}

static struct newer_told told_of(const struct image *image)
{
    const struct qut_trace_counters *counters = &image->counters;
    const struct qut_trace_retired *retired = &counters->retired[counters->retired_version & 1];
    const struct qut_trace_file_thread *threads = image->threads.items;
    struct newer_told told = {.samples = trace_image_samples(image),
                              .lost = sum_lost(&counters->unowned) + sum_lost(&retired->counts),
                              .marks = counters->unowned.marks + retired->counts.marks,
                              .is_closed = image->header.state == QUT_TRACE_CLOSED};
    for (size_t i = 0; i < image->threads.count; i++)
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++) {
            told.lost += sum_lost(&threads[i].writers[level].counts);
            told.marks += threads[i].writers[level].counts.marks;
        }
    return told;
}

int newer_count_told(const struct trace_segment_view *view, struct newer_told *told, struct base_error *error)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return no_memory(error);
    struct image image = trace_image_new(memory);
    const int result = trace_image_of_states(&image, view, error);
    if (result == 0)
        *told = told_of(&image);
    trace_memory_free(memory);
    return result;
}

// What it counts is what is in it.
static void count_present(struct trace *trace, bool has_marks)
{
    struct trace_process *process = &trace->processes[0];
    trace->counts = (struct qut_trace_counts){.hits = trace->present_samples};
    trace->stored = trace->present_samples;
    trace->merged = trace->under_way = 0;
    trace->overwritten_samples = trace->damaged_samples = 0;
    memset(trace->totals, 0, sizeof trace->totals);
    trace->mark_count = has_marks ? trace->mark_count : 0;
    trace->gap_count = 0;
    process->counts = trace->counts;
    process->stored = trace->stored;
    process->present_samples = trace->present_samples;
    process->merged = process->under_way = process->overwritten_samples = process->damaged_samples = 0;
    memset(process->totals, 0, sizeof process->totals);
    for (size_t i = 0; i < trace->thread_count; i++) {
        struct trace_thread *thread = &trace->threads[i];
        thread->counts = (struct qut_trace_counts){0};
        thread->stored = thread->merged = thread->under_way = 0;
        thread->mark_count = has_marks ? thread->mark_count : 0;
        thread->gap_count = 0;
        memset(thread->totals, 0, sizeof thread->totals);
        for (size_t s = 0; s < thread->sample_count; s++)
            thread->stored += trace->samples[thread->first_sample + s].count;
        thread->counts.hits = thread->stored;
    }
}

static int read_newer(const struct trace_segment_view *view, const struct newer_seen *seen, bool has_marks,
                      struct trace *trace, struct newer_told *told, struct newer_seen *now, struct base_error *error)
{
    struct trace_memory *memory = trace_memory_new();
    *trace = (struct trace){0};
    if (!memory)
        return no_memory(error);
    struct newer newer = {.part = {.leaves_out = leaves_out, .begin_chunk = begin_chunk, .end_chunk = end_chunk},
                          .seen = seen,
                          .now = now};
    struct image image = trace_image_new(memory);
    image.part = &newer.part;
    int result = trace_image_of_segment(&image, view, error);
    if (result == 0)
        result = trace_build(&image, trace, error);
    if (result == 0 && !keep_others(&newer, &image))
        result = no_memory(error);
    if (result != 0) {
        trace_memory_free(memory);
        newer_seen_free(now);
        *trace = (struct trace){0};
        return -1;
    }
    *told = told_of(&image);
    trace->memory = memory;
    count_present(trace, has_marks);
    return 0;
}

int newer_read(const struct trace_segment_view *view, const struct newer_seen *seen, struct trace *trace,
               struct newer_told *told, struct newer_seen *now, struct base_error *error)
{
    return read_newer(view, seen, false, trace, told, now, error);
}

int newer_read_marks(const struct trace_segment_view *view, const struct newer_seen *seen, struct trace *trace,
                     struct newer_told *told, struct newer_seen *now, struct base_error *error)
{
    return read_newer(view, seen, true, trace, told, now, error);
}
