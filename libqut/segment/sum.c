// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/segment/inside.h"

static void add_counts(struct segment_sums *sums, const struct qut_trace_counts *counts)
{
    struct qut_trace_counts *to = &sums->counts;
    uint64_t passed = segment_get64(&counts->passed); // once: it is in both
    to->hits += segment_get64(&counts->hits) + passed;
    to->throttled += segment_get64(&counts->throttled) + passed;
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        to->lost[i] += segment_get64(&counts->lost[i]);
    for (int i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        to->cut[i] += segment_get64(&counts->cut[i]);
    to->marks += segment_get64(&counts->marks);
    to->lost_marks += segment_get64(&counts->lost_marks);
}

static void add_totals(struct segment_sums *sums, const qut_trace_u64 *totals)
{
    for (int i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        sums->totals[i] += segment_get64(&totals[i]);
}

// Samples that it has taken from where they were, and not counted as overwritten yet (formats/qut_trace.md).
static uint64_t in_transition(const struct segment *segment, uint32_t slot, const struct qut_trace_writer *writer,
                              uint32_t level, const struct qut_trace_commit *commit)
{
    uint32_t chunk = segment_get32(&writer->taking);
    if (chunk == 0 || chunk > segment->chunk_count)
        return 0;
    uint64_t word = __atomic_load_n(&segment->directory[chunk - 1], __ATOMIC_ACQUIRE);
    bool is_its_own = segment_word_state(word) == QUT_TRACE_CHUNK_OPEN && segment_word_slot(word) == slot &&
                      segment_word_level(word) == level &&
                      !(commit->chunk == chunk && commit->chunk_seq == (uint32_t)segment_word_seq(word));
    return is_its_own ? segment_get32(&writer->taking_samples) : 0;
}

static void add_writer(struct segment_sums *sums, const struct segment *segment, uint32_t slot, uint32_t level)
{
    const struct qut_trace_writer *writer = &segment_thread_at(segment, slot)->writers[level];
    struct qut_trace_commit commit;
    // It may go on meanwhile: copied until nothing has changed, but not for ever.
    for (int tries = 0; tries < 16; tries++) {
        uint32_t version = __atomic_load_n(&writer->version, __ATOMIC_ACQUIRE);
        commit.stored = segment_get64(&writer->commits[version & 1].stored);
        commit.merged = segment_get64(&writer->commits[version & 1].merged);
        commit.overwritten = segment_get64(&writer->commits[version & 1].overwritten);
        commit.chunk = segment_get32(&writer->commits[version & 1].chunk);
        commit.chunk_seq = segment_get32(&writer->commits[version & 1].chunk_seq);
#ifndef SEGMENT_TRACE_NO_FENCE
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
        if (segment_get32(&writer->version) == version)
            break;
    }
    add_counts(sums, &writer->counts);
    add_totals(sums, writer->totals);
    sums->stored += commit.stored;
    sums->merged += commit.merged;
    sums->overwritten += commit.overwritten + in_transition(segment, slot, writer, level, &commit);
}

void segment_sum(const struct segment *segment, struct segment_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    const struct qut_trace_counters *counters = segment->counters;
    uint32_t version = __atomic_load_n(&counters->retired_version, __ATOMIC_ACQUIRE);
    const struct qut_trace_retired *retired = &counters->retired[version & 1];
    add_counts(sums, &counters->unowned);
    add_counts(sums, &retired->counts);
    add_totals(sums, retired->totals);
    add_totals(sums, counters->unowned_totals);
    sums->stored = segment_get64(&retired->stored);
    sums->merged = segment_get64(&retired->merged);
    sums->overwritten = segment_get64(&retired->overwritten);
    uint32_t count = __atomic_load_n(&segment->header->thread_count, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < count && slot < segment->thread_capacity; slot++) {
        const struct qut_trace_thread *thread = segment_thread_at(segment, slot);
        if (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) == QUT_TRACE_THREAD_TAKEN &&
            segment_get32(&thread->uid) == segment_get32(&retired->uid))
            continue; // in `retired` already
        for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++)
            add_writer(sums, segment, slot, level);
    }
    const struct qut_trace_counts *counts = &sums->counts;
    sums->under_way = counts->hits - sums->stored - sums->merged - counts->throttled - segment_lost_of(counts);
}
