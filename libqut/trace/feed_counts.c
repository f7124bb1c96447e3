// SPDX-License-Identifier: Apache-2.0
// Marks and sums: what is no sample.
#include <errno.h>
#include <string.h>

#include "libqut/trace/feed_entry_inline.h"
#include "libqut/trace/feed_sample.h"

// ---- marks

// A mark that finds no writer is lost, but it is no hit.
static bool begin_mark(struct feed_entry *entry, uintptr_t here)
{
    if (feed_own_slot(entry) && segment_depth(entry->slot) < QUT_TRACE_LEVELS)
        return feed_begin(entry, here);
    struct qut_trace_counts *counts = &entry->feed->segment.counters->unowned;
    __atomic_fetch_add(&counts->marks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->lost_marks, 1, __ATOMIC_RELAXED);
    return false;
}

int qut_trace_mark(uint32_t mark_kind, uint64_t id, const char *name)
{
    struct feed_entry entry;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    int result = QUT_STORED_NOT;
    if (!feed_enter(&entry, here))
        return QUT_STORED_NO_TRACE;
    struct segment *segment = &entry.feed->segment;
    if (begin_mark(&entry, here)) {
        uint32_t string = name ? segment_string(segment, name, strlen(name)) : 0;
        result = segment_mark(segment, entry.slot, entry.writer, os_now_ns(), mark_kind, id, string);
        segment_end_of(entry.slot);
    }
    feed_leave(&entry);
    return result;
}

// ---- kinds

// Under control.
static int own_kind(struct feed *feed, const char *name)
{
    uint32_t *names = feed->segment.header->kind_names;
    uint32_t string = *name ? segment_string(&feed->segment, name, strlen(name)) : 0;
    if (string == 0)
        return *name ? -EAGAIN : -EINVAL;
    for (int i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++) {
        if (names[i] == string)
            return QUT_TRACE_OWN_KIND_FIRST + i;
        if (names[i] == 0) {
            __atomic_store_n(&names[i], string, __ATOMIC_RELEASE);
            return QUT_TRACE_OWN_KIND_FIRST + i;
        }
    }
    return -EAGAIN;
}

int qut_trace_own_kind(const char *name)
{
    os_lock(&feed_control);
    struct feed *feed = feed_now(); // it is not closed under control
    int result = feed && name ? own_kind(feed, name) : -EINVAL;
    os_unlock(&feed_control);
    return result;
}

// ---- totals

// Each is added to by one atomic instruction: a handler may add to the same sum. Those of levels under way are left
// alone: their appends add to them in several.
static qut_trace_u64 *totals_of(struct feed_entry *entry)
{
    if (!feed_own_slot(entry))
        return entry->feed->segment.counters->unowned_totals;
    uint32_t depth = segment_depth(entry->slot);
    return entry->slot->writers[depth < QUT_TRACE_LEVELS ? depth : QUT_TRACE_LEVELS - 1].totals;
}

void feed_add_beside(struct feed_entry *entry, uint32_t total, uint64_t amount)
{
    if (total >= QUT_TRACE_TOTAL_COUNT - 1)
        return;
    qut_trace_u64 *totals = totals_of(entry);
    __atomic_fetch_add(&totals[total], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&totals[total + 1], amount, __ATOMIC_RELAXED);
}

void qut_trace_add(uint32_t total, uint64_t amount)
{
    struct feed_entry entry;
    if (total >= QUT_TRACE_TOTAL_COUNT || !feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return;
    __atomic_fetch_add(&totals_of(&entry)[total], amount, __ATOMIC_RELAXED);
    feed_leave(&entry);
}

void feed_trace_add_both(uint32_t total, uint64_t amount)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return;
    feed_add_beside(&entry, total, amount);
    feed_leave(&entry);
}

// ---- what became of hits

// Of the last trace, twice: while one is written, the other one is read.
static struct qut_trace_counters_now kept[2];
static _Atomic uint32_t kept_version;

static void take_counts(struct qut_trace_counters_now *now, const struct segment *segment)
{
    struct segment_sums sums;
    memset(&sums, 0, sizeof sums);
    memset(now, 0, sizeof *now);
    segment_sum(segment, &sums);
    now->hits = sums.counts.hits;
    now->stored = sums.stored;
    now->merged = sums.merged;
    now->throttled = sums.counts.throttled;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        now->lost[i] = sums.counts.lost[i];
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        now->cut[i] = sums.counts.cut[i];
    now->under_way = sums.under_way;
    now->marks = sums.counts.marks;
    now->lost_marks = sums.counts.lost_marks;
    now->overwritten = sums.overwritten;
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        now->totals[i] = sums.totals[i];
    now->node_count = __atomic_load_n(&segment->counters->node_count, __ATOMIC_RELAXED);
}
static_assert(sizeof((struct qut_trace_counters_now *)0)->lost == sizeof(uint64_t[QUT_TRACE_LOST_COUNT]) &&
                  sizeof((struct qut_trace_counters_now *)0)->cut == sizeof(uint64_t[QUT_TRACE_CUT_COUNT]) &&
                  sizeof((struct qut_trace_counters_now *)0)->totals == sizeof(uint64_t[QUT_TRACE_TOTAL_COUNT]),
              "every count has its place");

void feed_keep_counts(const struct segment *segment)
{
    uint32_t version = atomic_load_explicit(&kept_version, memory_order_relaxed) + 1;
    take_counts(&kept[version & 1], segment);
    atomic_store_explicit(&kept_version, version, memory_order_release);
}

void qut_trace_get_counts(struct qut_trace_counters_now *counts, size_t size)
{
    struct qut_trace_counters_now now;
    struct feed_entry entry;
    if (feed_enter(&entry, (uintptr_t)__builtin_frame_address(0))) {
        take_counts(&now, &entry.feed->segment);
        feed_leave(&entry);
    } else {
        now = kept[atomic_load_explicit(&kept_version, memory_order_acquire) & 1];
    }
    memset(counts, 0, size);
    memcpy(counts, &now, size < sizeof now ? size : sizeof now);
}
