// SPDX-License-Identifier: Apache-2.0
// Eight threads that append without a pause, each with two timers whose handlers append too, and interrupt each other.
// The test counts for itself what it handed in and what it was told; at the end the store's counts are the same, to the
// last hit, and what was stored is there, or was overwritten.
//
// Usage: storm_test [SECONDS]
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qut/trace.h"
#include "tests/proof/store/hits.h"
#include "tests/proof/store/ticks.h"
#include "tests/support/tap.h"

static unsigned seconds = 3;

static struct drain *drain; // shared with the process that drains
static struct hits *counted;
static bool is_over;

static void *appender(void *argument)
{
    uint32_t index = (uint32_t)(uintptr_t)argument;
    if (index % 2 && qut_trace_thread_register() != 0)
        abort();
    hits_begin(counted, index);
    static const uint64_t periods[DRAIN_THREADS][2] = {{37000, 41000}, {43000, 47000}, {53000, 59000}, {61000, 67000},
                                                       {71000, 73000}, {79000, 83000}, {89000, 97000}, {101000, 31000}};
    struct ticks ticks;
    if (ticks_start(&ticks, periods[index][0], periods[index][1]) != 2)
        abort();
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        hits_one(hits_mine);
    ticks_stop(&ticks);
    hits_mine = NULL; // a signal may still be on its way
    return NULL;
}

// ---- judging

static void judge(bool has_all, const struct qut_trace_counters_now *now)
{
    struct hits sum = {.hits = 0};
    uint64_t lost = 0;
    for (int i = 0; i < DRAIN_THREADS; i++) {
        const struct hits *of = &counted[i];
        sum.hits += of->hits;
        sum.merged += of->merged;
        sum.stored += of->stored;
        sum.not_stored += of->not_stored;
        sum.skipped += of->skipped;
        sum.added += of->added;
        sum.deepest = of->deepest > sum.deepest ? of->deepest : sum.deepest;
        tally_add(&sum.told, &of->told);
    }
    for (int i = 0; i < 8; i++)
        lost += now->lost[i];
#define SAME(is, wanted) CHECK((is) == (wanted), "%llu, %llu", (unsigned long long)(is), (unsigned long long)(wanted))
    SAME(now->hits, sum.hits);
    SAME(now->stored, sum.stored);
    SAME(now->merged, sum.merged);
    SAME(now->throttled + lost, sum.skipped + sum.not_stored);
    CHECK(now->throttled <= sum.skipped, "%llu, %llu", (unsigned long long)now->throttled,
          (unsigned long long)sum.skipped);
    SAME(now->under_way, 0);
    SAME(now->hits, now->stored + now->merged + now->throttled + lost);
    SAME(now->marks - now->lost_marks, sum.told.marks);
    SAME(now->totals[QUT_TOTAL_OWN_FIRST], sum.added);

    struct decoded_totals totals;
    if (!CHECK(drain_rest(drain, &totals), "%s", drain->fault))
        return;
    SAME(totals.sum.hits, sum.hits);
    SAME(totals.sum.stored, now->stored);
    SAME(totals.sum.merged, now->merged);
    SAME(totals.sum.lost, lost);
    SAME(totals.overwritten, now->overwritten);
    SAME(totals.totals[QUT_TRACE_TOTAL_OWN_FIRST], sum.added);
    const struct tally *found = &drain->tally;
    for (uint32_t i = 0; i < DRAIN_PLACES; i++)
        CHECK(has_all ? found->samples[i] == sum.told.samples[i] : found->samples[i] <= sum.told.samples[i],
              "node %u: %llu, %llu", i, (unsigned long long)found->samples[i], (unsigned long long)sum.told.samples[i]);
    SAME(tally_samples(found) + now->overwritten, sum.stored + sum.merged);
    if (has_all) {
        SAME(now->overwritten, 0);
        SAME(found->marks, sum.told.marks);
        SAME(found->mark_hash, sum.told.mark_hash);
        SAME(found->extra_hash, sum.told.extra_hash);
    }
#undef SAME
#ifndef __SANITIZE_THREAD__ // which holds signals back until it suits it
    CHECK(sum.deepest >= 2, "handlers did not interrupt each other: %llu", (unsigned long long)sum.deepest);
#endif
    printf("# %llu hits, stored %llu, merged %llu, throttled %llu, lost %llu (nested too deep %llu), marks %llu, "
           "overwritten %llu, drained %llu; levels %llu %llu %llu\n",
           (unsigned long long)now->hits, (unsigned long long)now->stored, (unsigned long long)now->merged,
           (unsigned long long)now->throttled, (unsigned long long)lost,
           (unsigned long long)now->lost[QUT_TRACE_LOST_NESTED], (unsigned long long)now->marks,
           (unsigned long long)now->overwritten, (unsigned long long)drain->samples_drained,
           (unsigned long long)drain->level_samples[0], (unsigned long long)drain->level_samples[1],
           (unsigned long long)drain->level_samples[2]);
}

static void storm(uint32_t mode, uint64_t merge_gap_ns)
{
    memset(counted, 0, DRAIN_THREADS * sizeof *counted);
    __atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
    drain = drain_create("storm");
    if (!CHECK(drain, "no memory"))
        return;
    struct qut_trace_options options = {.size = sizeof options,
                                        .segment_bytes = mode == QUT_TRACE_KEEP_ALL ? 8 << 20 : 2 << 20,
                                        .path = drain->path,
                                        .mode = mode,
                                        .flags = QUT_TRACE_CPU_TIME,
                                        .metric_mask = 1 << QUT_METRIC_MINOR_FAULTS | 1 << QUT_METRIC_MAJOR_FAULTS,
                                        .thread_count = 16,
                                        .merge_gap_ns = merge_gap_ns};
    int opened = qut_trace_open(&options);
    if (!CHECK(opened == 0, "%d", opened) || !CHECK(drain_nodes(drain), "nodes"))
        return;
    hits_are_of(drain);
    bool drains = mode == QUT_TRACE_KEEP_ALL;
    CHECK(!drains || drain_start(drain), "%s", drain->fault);
    pthread_t threads[DRAIN_THREADS];
    for (uintptr_t i = 0; i < DRAIN_THREADS; i++)
        pthread_create(&threads[i], NULL, appender, (void *)i);
    struct timespec pause = {.tv_sec = (long)seconds / 3, .tv_nsec = (long)seconds % 3 * 333333333};
    nanosleep(&pause, NULL);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < DRAIN_THREADS; i++)
        pthread_join(threads[i], NULL);
    struct qut_trace_counters_now now, after;
    qut_trace_get_counts(&now, sizeof now);
    qut_trace_close();
    qut_trace_get_counts(&after, sizeof after);
    CHECK(memcmp(&now, &after, sizeof now) == 0, "counts change when the trace is closed");
    CHECK(!drains || drain_stop(drain), "%s", drain->fault);
    judge(drains, &now);
    drain_destroy(drain);
}

TEST(newest_are_kept)
{
    storm(QUT_TRACE_KEEP_NEWEST, 0);
}

TEST(none_are_merged)
{
    storm(QUT_TRACE_KEEP_NEWEST, 1);
}

TEST(all_are_kept_and_drained)
{
    storm(QUT_TRACE_KEEP_ALL, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = (unsigned)atoi(argv[1]);
    ticks_handle(hits_on_tick);
    counted = hits_create();
    if (!counted)
        return 1;
    RUN(newest_are_kept);
    RUN(none_are_merged);
    RUN(all_are_kept_and_drained);
    return tap_finish();
}
