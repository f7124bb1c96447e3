// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/segment/inside.h"

static void put_name(struct qut_trace_thread *thread, const char *name)
{
    qut_trace_u64 words[QUT_TRACE_NAME_BYTES / 8] = {0};
    if (name)
        memcpy(words, name, strnlen(name, QUT_TRACE_NAME_BYTES - 1));
    for (int i = 0; i < QUT_TRACE_NAME_BYTES / 8; i++)
        segment_put64((qut_trace_u64 *)(void *)thread->name + i, words[i]);
}

void segment_thread_name(const struct qut_trace_thread *thread, char name[static QUT_TRACE_NAME_BYTES])
{
    for (int i = 0; i < QUT_TRACE_NAME_BYTES / 8; i++) {
        uint64_t word = segment_get64((const qut_trace_u64 *)(const void *)thread->name + i);
        memcpy(name + 8 * i, &word, sizeof word);
    }
}

void segment_thread_rename(struct qut_trace_thread *thread, const char *name)
{
    put_name(thread, name);
}

static void add_counts(struct qut_trace_counts *to, const struct qut_trace_counts *counts)
{
    to->hits += counts->hits + counts->passed;
    to->throttled += counts->throttled + counts->passed;
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        to->lost[i] += counts->lost[i];
    for (int i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        to->cut[i] += counts->cut[i];
    to->marks += counts->marks;
    to->lost_marks += counts->lost_marks;
}

// Adds what its writers counted to `retired`, all at once: from the new version on it is there, and no longer here.
static void retire(struct segment *segment, struct qut_trace_thread *thread)
{
    struct qut_trace_counters *counters = segment->counters;
    uint32_t version = segment_get32(&counters->retired_version);
    struct qut_trace_retired *to = &counters->retired[(version + 1) & 1];
    segment_order_stores();
    *to = counters->retired[version & 1];
    for (int level = 0; level < QUT_TRACE_LEVELS; level++) {
        struct qut_trace_writer *writer = &thread->writers[level];
        const struct qut_trace_commit *commit = segment_commit_of(writer);
        add_counts(&to->counts, &writer->counts);
        to->stored += commit->stored;
        to->merged += commit->merged;
        to->overwritten += commit->overwritten;
        for (int i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
            to->totals[i] += writer->totals[i];
    }
    to->uid = thread->uid;
    __atomic_store_n(&counters->retired_version, version + 1, __ATOMIC_RELEASE);
    segment_order_stores();
    memset(thread->writers, 0, sizeof thread->writers);
}

static struct qut_trace_thread *take_fresh(struct segment *segment)
{
    uint32_t *count = &segment->header->thread_count, slot = segment_get32(count);
    while (slot < segment->thread_capacity) {
        if (__atomic_compare_exchange_n(count, &slot, slot + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            struct qut_trace_thread *thread = segment_thread_at(segment, slot);
            segment_put32(&thread->state, QUT_TRACE_THREAD_TAKEN);
            return thread;
        }
    }
    return NULL;
}

// One at a time. A thread that comes at the same moment goes without a slot until its next hit.
static struct qut_trace_thread *take_ended(struct segment *segment)
{
    if (__atomic_exchange_n(&segment->retiring, 1, __ATOMIC_ACQUIRE))
        return NULL;
    struct qut_trace_thread *taken = NULL;
    for (uint32_t i = 0; i < segment->thread_capacity && !taken; i++) {
        uint32_t slot = (segment->thread_hand + i) % segment->thread_capacity, state = QUT_TRACE_THREAD_ENDED;
        struct qut_trace_thread *thread = segment_thread_at(segment, slot);
        if (!__atomic_compare_exchange_n(&thread->state, &state, QUT_TRACE_THREAD_TAKEN, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        retire(segment, thread);
        segment->thread_hand = slot + 1;
        taken = thread;
    }
    __atomic_store_n(&segment->retiring, 0, __ATOMIC_RELEASE);
    return taken;
}

static struct qut_trace_thread *begin(struct segment *segment, uint32_t tid, const char *name, uint64_t now_ns)
{
    struct qut_trace_thread *thread = take_fresh(segment);
    if (!thread)
        thread = take_ended(segment);
    if (!thread)
        return NULL;
    // Release: a thread that sees it sees the slot taken, and so no longer the thread's that had it before.
    __atomic_store_n(&thread->tid, tid, __ATOMIC_RELEASE);
    segment_put64(&thread->start_ns, now_ns);
    segment_put64(&thread->end_ns, 0);
    put_name(thread, name);
    for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++) {
        thread->writers[level].level = level;
        thread->entry_sp[level] = 0;
    }
    __atomic_store_n(&thread->uid, __atomic_fetch_add(&segment->header->thread_uid_next, 1, __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&thread->state, QUT_TRACE_THREAD_LIVE, __ATOMIC_RELEASE);
    return thread;
}

static bool is_full(const struct segment *segment)
{
    if (segment_get32(&segment->header->thread_count) < segment->thread_capacity)
        return false;
    for (uint32_t slot = 0; slot < segment->thread_capacity; slot++)
        if (segment_get32(&segment_thread_at(segment, slot)->state) == QUT_TRACE_THREAD_ENDED)
            return false;
    return true;
}

struct qut_trace_thread *segment_thread_begin(struct segment *segment, uint32_t tid, const char *name, uint64_t now_ns)
{
    return is_full(segment) ? NULL : begin(segment, tid, name, now_ns);
}

void segment_thread_end(struct segment *segment, struct qut_trace_thread *thread, uint64_t now_ns)
{
    // Its own handlers, should one still come, are refused from here on.
    segment_refuse_appends(thread);
    for (int level = 0; level < QUT_TRACE_LEVELS; level++) {
        segment_close_chunk(segment, thread, &thread->writers[level]);
        segment_settle(&thread->writers[level]);
    }
    segment_put64(&thread->end_ns, now_ns ? now_ns : 1);
    __atomic_store_n(&thread->state, QUT_TRACE_THREAD_ENDED, __ATOMIC_RELEASE);
}
