// SPDX-License-Identifier: Apache-2.0
// Each thread's records, from the chunks of its three writers, in the order of their time.
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/inside.h"
#include "tracer/trace/order.h"

struct thread_source {
    uint32_t uid;
    const struct qut_trace_file_thread *state; // NULL: only its chunks are left
};

struct maker {
    struct image *image;
    struct trace *trace;
    struct decoder decoder;
    struct gap_finder gaps;
    struct chunk_list chunks;
    size_t next_chunk;
};

static int compare_sources(const void *a, const void *b)
{
    const struct thread_source *left = a, *right = b;
    return left->uid < right->uid ? -1 : left->uid > right->uid;
}

// All uids, those with a state first known by it.
static struct thread_source *list_threads(const struct image *image, const struct chunk_list *chunks, size_t *count)
{
    struct thread_source *sources =
        trace_memory_take(image->memory, image->threads.count + chunks->count, sizeof *sources);
    if (!sources)
        return NULL;
    const struct qut_trace_file_thread *states = image->threads.items;
    size_t known = image->threads.count;
    for (size_t i = 0; i < known; i++)
        sources[i] = (struct thread_source){.uid = states[i].uid, .state = &states[i]};
    qsort(sources, known, sizeof *sources, compare_sources);
    size_t all = known;
    for (size_t i = 0; i < chunks->count; i++) {
        struct thread_source key = {.uid = chunks->places[i].uid};
        if ((i && chunks->places[i - 1].uid == key.uid) ||
            bsearch(&key, sources, known, sizeof *sources, compare_sources))
            continue;
        sources[all++] = key;
    }
    qsort(sources, all, sizeof *sources, compare_sources);
    *count = all;
    return sources;
}

void trace_counts_add(struct qut_trace_counts *sum, const struct qut_trace_counts *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void add_writer(struct trace_thread *thread, const struct qut_trace_file_writer *writer)
{
    struct qut_trace_counts counts = writer->counts;
    counts.hits += counts.passed;
    counts.throttled += counts.passed;
    counts.passed = 0;
    trace_counts_add(&thread->counts, &counts);
    thread->stored += writer->commit.stored;
    thread->merged += writer->commit.merged;
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        thread->totals[i] += writer->totals[i];
    uint64_t told = writer->commit.stored + writer->commit.merged + writer->counts.throttled;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        told += writer->counts.lost[i];
    uint64_t left = writer->counts.hits - told;
    if (left <= writer->under_way)
        thread->under_way += left;
}

static void set_thread(struct trace_thread *thread, const struct thread_source *source)
{
    const struct qut_trace_file_thread *state = source->state;
    *thread = (struct trace_thread){.uid = source->uid, .end_ns = UINT64_MAX};
    if (!state)
        return;
    thread->tid = state->tid;
    memcpy(thread->name, state->name, sizeof thread->name);
    thread->name[sizeof thread->name - 1] = 0;
    thread->start_ns = state->start_ns;
    thread->end_ns = state->end_ns ? state->end_ns : UINT64_MAX;
    for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
        add_writer(thread, &state->writers[level]);
}

// Of a thread whose slot was given away. Its own counts are in the sum of such threads; what is here is what its
// records say.
static void set_from_chunk(struct trace_thread *thread, const struct qut_trace_chunk *header,
                           const struct decoded *decoded)
{
    thread->tid = header->tid;
    memcpy(thread->name, header->name, sizeof thread->name);
    thread->name[sizeof thread->name - 1] = 0;
    if (decoded->first_record_ns && (!thread->start_ns || decoded->first_record_ns < thread->start_ns))
        thread->start_ns = decoded->first_record_ns;
    if (thread->end_ns == UINT64_MAX || decoded->end_ns > thread->end_ns)
        thread->end_ns = decoded->end_ns;
}

static uint64_t sum_lost(const struct qut_trace_file_writer *writer)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum += writer->counts.lost[i];
    return sum;
}

static bool add_chunk(struct maker *maker, struct trace_thread *thread, const struct qut_trace_file_thread *state,
                      const struct chunk_place *place)
{
    const struct qut_trace_chunk *header = (const void *)place->chunk->bytes;
    const struct qut_trace_file_writer *writer = state ? &state->writers[place->level] : NULL;
    bool is_last = writer && writer->commit.chunk && writer->commit.chunk_seq == (uint32_t)place->seq;
    const struct qut_trace_run *run = place->chunk->is_open && is_last ? &writer->commit.run : NULL;
    struct image_part *part = maker->image->part;
    struct decoded decoded;
    if ((part && !part->begin_chunk(part, &maker->decoder, place)) ||
        !trace_decode_chunk(&maker->decoder, place->chunk, run, &decoded) ||
        (part && !part->end_chunk(part, &maker->decoder, place, &decoded.samples)))
        return false;
    if (decoded.is_damaged) {
        maker->image->damaged_chunks++;
        trace_image_damage(maker->image, "chunk %llu of thread %u: malformed after %llu samples",
                           (unsigned long long)place->seq, header->tid, (unsigned long long)decoded.samples);
    }
    maker->trace->present_samples += decoded.samples;
    maker->trace->chunk_bytes += sizeof *header + place->chunk->used_bytes;
    maker->trace->chunk_count++;
    if (!state)
        set_from_chunk(thread, header, &decoded);
    uint64_t lost = !place->chunk->is_open ? header->lost_at_end : writer ? sum_lost(writer) : header->lost_before;
    trace_gaps_chunk(&maker->gaps, header, &decoded, lost);
    return !maker->gaps.failed;
}

static bool add_level(struct maker *maker, struct trace_thread *thread, const struct qut_trace_file_thread *state,
                      unsigned level)
{
    trace_gaps_begin(&maker->gaps, thread->start_ns);
    size_t first = maker->next_chunk;
    for (; maker->next_chunk < maker->chunks.count; maker->next_chunk++) {
        const struct chunk_place *place = &maker->chunks.places[maker->next_chunk];
        if (place->uid != thread->uid || place->level != level)
            break;
        if (!state && maker->next_chunk == first)
            trace_gaps_begin(&maker->gaps,
                             ((const struct qut_trace_chunk *)(const void *)place->chunk->bytes)->base_time
                                 << maker->decoder.time_shift);
        if (!add_chunk(maker, thread, state, place))
            return false;
    }
    uint64_t end_ns = thread->end_ns != UINT64_MAX ? thread->end_ns : maker->trace->end_ns;
    trace_gaps_end(&maker->gaps, state ? &state->writers[level] : NULL, end_ns);
    return !maker->gaps.failed;
}

static bool add_thread(struct maker *maker, struct trace_thread *thread, const struct qut_trace_file_thread *state)
{
    struct decoder *decoder = &maker->decoder;
    thread->first_sample = decoder->samples.count;
    thread->first_mark = decoder->marks.count;
    thread->first_gap = maker->gaps.gaps.count;
    for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
        if (!add_level(maker, thread, state, level))
            return false;
    thread->sample_count = decoder->samples.count - thread->first_sample;
    thread->mark_count = decoder->marks.count - thread->first_mark;
    thread->gap_count = maker->gaps.gaps.count - thread->first_gap;
    const struct trace_sample *samples = decoder->samples.items;
    for (size_t i = thread->first_sample; !state && i < decoder->samples.count; i++) {
        thread->stored++;
        thread->merged += samples[i].count - 1;
        thread->counts.hits += samples[i].count;
    }
    return trace_order_samples(decoder->samples.items, thread->first_sample, thread->sample_count) &&
           trace_order_marks(decoder->marks.items, thread->first_mark, thread->mark_count) &&
           trace_order_gaps(maker->gaps.gaps.items, thread->first_gap, thread->gap_count);
}

static void add_to_sums(struct trace *trace, const struct trace_thread *thread)
{
    trace_counts_add(&trace->counts, &thread->counts);
    trace->stored += thread->stored;
    trace->merged += thread->merged;
    trace->under_way += thread->under_way;
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        trace->totals[i] += thread->totals[i];
}

static int compare_threads(const void *a, const void *b)
{
    const struct trace_thread *left = a, *right = b;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    return left->uid < right->uid ? -1 : left->uid > right->uid;
}

static bool add_threads(struct maker *maker, const struct thread_source *sources, size_t count)
{
    struct trace *trace = maker->trace;
    trace->threads = trace_memory_take(maker->image->memory, count, sizeof *trace->threads);
    if (!trace->threads)
        return false;
    for (size_t i = 0; i < count; i++) {
        // Only the last state of a uid, where a damaged segment has several.
        if (i && sources[i].uid == sources[i - 1].uid)
            continue;
        struct trace_thread *thread = &trace->threads[trace->thread_count++];
        set_thread(thread, &sources[i]);
        if (!add_thread(maker, thread, sources[i].state))
            return false;
        if (sources[i].state && sources[i].state->state != QUT_TRACE_THREAD_NONE)
            add_to_sums(trace, thread);
    }
    qsort(trace->threads, trace->thread_count, sizeof *trace->threads, compare_threads);
    return true;
}

int trace_build_threads(struct image *image, struct trace *trace, struct node_map *nodes, struct base_error *error)
{
    bool has_damage = image->damaged_blocks || image->is_truncated || image->may_miss_chunks;
    struct maker maker = {.image = image,
                          .trace = trace,
                          .decoder = {.image = image,
                                      .nodes = nodes,
                                      .samples = trace_vector(image->memory, sizeof(struct trace_sample)),
                                      .extras = trace_vector(image->memory, sizeof(struct trace_extra)),
                                      .marks = trace_vector(image->memory, sizeof(struct trace_mark)),
                                      .metrics = trace_vector(image->memory, sizeof *trace->metrics),
                                      .time_shift = image->header.time_shift},
                          .gaps = {.gaps = trace_vector(image->memory, sizeof(struct trace_gap)),
                                   .time_shift = image->header.time_shift}};
    if (trace_order_chunks(image, &maker.chunks, error) != 0)
        return -1;
    has_damage = has_damage || image->damaged_chunks;
    maker.gaps.missing_reason =
        has_damage || trace->mode == QUT_TRACE_STREAM ? TRACE_GAP_DAMAGED : TRACE_GAP_OVERWRITTEN;
    // Adding 0 to where they begin must not be done to a null pointer, even where there are none.
    bool made = trace_vector_reserve(&maker.decoder.samples, 1) && trace_vector_reserve(&maker.decoder.extras, 1) &&
                trace_vector_reserve(&maker.decoder.marks, 1) && trace_vector_reserve(&maker.decoder.metrics, 1) &&
                trace_vector_reserve(&maker.gaps.gaps, 1);
    size_t count = 0;
    const struct thread_source *sources = list_threads(image, &maker.chunks, &count);
    if (!made || !sources || !add_threads(&maker, sources, count))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the samples");
    trace->samples = maker.decoder.samples.items;
    trace->sample_count = maker.decoder.samples.count;
    trace->extras = maker.decoder.extras.items;
    trace->extra_count = maker.decoder.extras.count;
    trace->marks = maker.decoder.marks.items;
    trace->mark_count = maker.decoder.marks.count;
    trace->metrics = maker.decoder.metrics.items;
    trace->metrics_count = maker.decoder.metrics.count;
    trace->gaps = maker.gaps.gaps.items;
    trace->gap_count = maker.gaps.gaps.count;
    return 0;
}
