// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/trace/inside.h"

static void add_counts(struct qut_segment_sums *sums, const struct qut_trace_counts *counts)
{
    struct qut_trace_counts *to = &sums->counts;
    to->hits += qut_get64(&counts->hits);
    to->throttled += qut_get64(&counts->throttled);
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        to->lost[i] += qut_get64(&counts->lost[i]);
    for (int i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        to->cut[i] += qut_get64(&counts->cut[i]);
    to->marks += qut_get64(&counts->marks);
    to->lost_marks += qut_get64(&counts->lost_marks);
}

static void add_totals(struct qut_segment_sums *sums, const qut_trace_u64 *totals)
{
    for (int i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        sums->totals[i] += qut_get64(&totals[i]);
}

// Samples that it has taken from where they were, and not counted as overwritten yet (formats/qut_trace.md).
static uint64_t in_transition(const struct qut_segment *segment, uint32_t slot, const struct qut_trace_writer *writer,
                              uint32_t level, const struct qut_trace_commit *commit)
{
    uint32_t chunk = qut_get32(&writer->taking);
    if (chunk == 0 || chunk > segment->chunk_count)
        return 0;
    uint64_t word = __atomic_load_n(&segment->directory[chunk - 1], __ATOMIC_ACQUIRE);
    bool is_its_own = qut_word_state(word) == QUT_TRACE_CHUNK_OPEN && qut_word_slot(word) == slot &&
                      qut_word_level(word) == level &&
                      !(commit->chunk == chunk && commit->chunk_seq == (uint32_t)qut_word_seq(word));
    return is_its_own ? qut_get32(&writer->taking_samples) : 0;
}

static void add_writer(struct qut_segment_sums *sums, const struct qut_segment *segment, uint32_t slot, uint32_t level)
{
    const struct qut_trace_writer *writer = &qut_thread_at(segment, slot)->writers[level];
    struct qut_trace_commit commit;
    // It may go on meanwhile: copied until nothing has changed, but not for ever.
    for (int tries = 0; tries < 16; tries++) {
        uint32_t version = __atomic_load_n(&writer->version, __ATOMIC_ACQUIRE);
        commit.stored = qut_get64(&writer->commits[version & 1].stored);
        commit.merged = qut_get64(&writer->commits[version & 1].merged);
        commit.overwritten = qut_get64(&writer->commits[version & 1].overwritten);
        commit.chunk = qut_get32(&writer->commits[version & 1].chunk);
        commit.chunk_seq = qut_get32(&writer->commits[version & 1].chunk_seq);
#ifndef QUT_TRACE_NO_FENCE
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
        if (qut_get32(&writer->version) == version)
            break;
    }
    add_counts(sums, &writer->counts);
    add_totals(sums, writer->totals);
    sums->stored += commit.stored;
    sums->merged += commit.merged;
    sums->overwritten += commit.overwritten + in_transition(segment, slot, writer, level, &commit);
}

void qut_segment_sum(const struct qut_segment *segment, struct qut_segment_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    const struct qut_trace_counters *counters = segment->counters;
    uint32_t version = __atomic_load_n(&counters->retired_version, __ATOMIC_ACQUIRE);
    const struct qut_trace_retired *retired = &counters->retired[version & 1];
    add_counts(sums, &counters->unowned);
    add_counts(sums, &retired->counts);
    add_totals(sums, retired->totals);
    add_totals(sums, counters->unowned_totals);
    sums->stored = qut_get64(&retired->stored);
    sums->merged = qut_get64(&retired->merged);
    sums->overwritten = qut_get64(&retired->overwritten);
    uint32_t count = __atomic_load_n(&segment->header->thread_count, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < count && slot < segment->thread_capacity; slot++) {
        const struct qut_trace_thread *thread = qut_thread_at(segment, slot);
        if (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) == QUT_TRACE_THREAD_TAKEN &&
            qut_get32(&thread->uid) == qut_get32(&retired->uid))
            continue; // in `retired` already
        for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++)
            add_writer(sums, segment, slot, level);
    }
    const struct qut_trace_counts *counts = &sums->counts;
    sums->under_way = counts->hits - sums->stored - sums->merged - counts->throttled - qut_lost_of(counts);
}
