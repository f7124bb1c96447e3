// SPDX-License-Identifier: Apache-2.0
// What a trace says of waits, locks and hot spots, from traces made by hand in which it is known.
#include <math.h>

#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"
#include "tracer/analysis/selection.h"
#include "tracer/analysis/weights.h"

#define MS ((uint64_t)1000000)

static struct trace trace;
static struct build_trace build;

static void begin(void)
{
    build_begin(&build, &trace);
}

static void end(void)
{
    build_free(&trace);
}

static void take(unsigned kind, uint64_t time_ns, uint64_t cpu_ns, uint32_t node, unsigned flags)
{
    build_sample(&build, (struct trace_sample){.first_ns = time_ns,
                                               .last_ns = time_ns,
                                               .cpu_ns = cpu_ns,
                                               .count = 1,
                                               .node = node,
                                               .kind = (uint16_t)kind,
                                               .flags = (uint16_t)flags});
}

static void take_end(unsigned kind, uint64_t from_ns, uint64_t to_ns, uint64_t cpu_ns, uint32_t node)
{
    take(kind, to_ns, cpu_ns, node, QUT_TRACE_SAMPLE_OFF_CPU);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, to_ns - from_ns);
}

static void finish(void)
{
    build_end(&build);
    ck_assert(trace_find_open(&trace));
}

static void find_spots(struct hot_spots *spots, enum measure measure, bool with_own)
{
    const struct selection_wanted everything = {.kind = SELECTION_ALL, .to_ns = UINT64_MAX, .show_agent = true};
    struct selection selection;
    struct base_error error;
    ck_assert_int_eq(analysis_selection_make(&selection, &trace, &everything, &error), 0);
    ck_assert_int_eq(analysis_hot_spots_make(spots, &selection, measure, with_own), 0);
    analysis_selection_free(&selection);
}

static void expect(unsigned measure, size_t count, const uint64_t *wanted)
{
    struct weights_walk walk;
    struct weights weights;
    const struct trace_sample *sample;
    analysis_weights_begin(&walk, &trace, &trace.threads[0]);
    for (size_t i = 0; i < count; i++) {
        ck_assert(analysis_weights_next(&walk, &sample, &weights));
        ck_assert_msg(weights.of[measure] == wanted[i], "sample %zu: %ju instead of %ju", i,
                      (uintmax_t)weights.of[measure], (uintmax_t)wanted[i]);
    }
    ck_assert(!analysis_weights_next(&walk, &sample, &weights));
}

// A sync sample says nothing of the time before it; what a system call used is its own where both ends are there.
START_TEST(processor_time_goes_to_ticks)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(QUT_TRACE_KIND_CPU, 10 * MS, 10 * MS, 1, 0);
    take(QUT_TRACE_KIND_ALLOCATE, 14 * MS, 14 * MS, 2, 0);
    take(QUT_TRACE_KIND_CPU, 20 * MS, 20 * MS, 1, 0);
    take(QUT_TRACE_KIND_READ, 23 * MS, 23 * MS, 3, QUT_TRACE_SAMPLE_BEGINS);
    take_end(QUT_TRACE_KIND_READ, 23 * MS, 99 * MS, 43 * MS, 3); // 20 ms in the kernel
    take(QUT_TRACE_KIND_CPU, 106 * MS, 50 * MS, 1, 0);
    take_end(QUT_TRACE_KIND_WRITE, 107 * MS, 110 * MS, 54 * MS, 3); // its beginning was not stored
    take(QUT_TRACE_KIND_CPU, 116 * MS, 60 * MS, 1, 0);
    finish();
    expect(MEASURE_CPU, 8, (const uint64_t[]){0, 0, 10 * MS, 0, 20 * MS, 10 * MS, 0, 10 * MS});
}
END_TEST

START_TEST(processor_time_without_ticks)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(QUT_TRACE_KIND_ALLOCATE, 10 * MS, 10 * MS, 1, 0);
    take(QUT_TRACE_KIND_LOCK, 20 * MS, 15 * MS, 1, 0);
    finish();
    expect(MEASURE_CPU, 2, (const uint64_t[]){0, 5 * MS});
}
END_TEST

START_TEST(blocked_time_is_counted_once)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    take_end(QUT_TRACE_KIND_READ, 10, 20, 0, 1);
    take_end(QUT_TRACE_KIND_SLEEP, 40, 50, 0, 1); // lies in the next one
    take_end(QUT_TRACE_KIND_WAIT, 30, 90, 0, 1);  // 60, of which 10 were counted
    take_end(QUT_TRACE_KIND_CALL, 95, 100, 0, 1); // says that it was blocked
    take(QUT_TRACE_KIND_CALL, 120, 0, 1, 0);      // a call that ran
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 10);
    finish();
    expect(MEASURE_BLOCKED, 5, (const uint64_t[]){10, 10, 50, 5, 0});
    struct intervals intervals;
    ck_assert_int_eq(analysis_intervals_make(&intervals, &trace), 0);
    ck_assert_uint_eq(intervals.count, 5);
    ck_assert_uint_eq(intervals.items[2].blocked_ns, 50);
    ck_assert_uint_eq(intervals.items[2].from_ns, 30);
    ck_assert_uint_eq(intervals.items[4].blocked_ns, 0);
    analysis_intervals_free(&intervals);
}
END_TEST

// A beginning without an end lasts until its thread is seen again, or to the end; one with an end counts for nothing.
START_TEST(open_intervals)
{
    build_thread(&build, 1, "t", 0, 5000 * MS);
    take(QUT_TRACE_KIND_READ, 10 * MS, 0, 1, QUT_TRACE_SAMPLE_BEGINS);
    take_end(QUT_TRACE_KIND_READ, 10 * MS, 2010 * MS, 0, 1);
    take(QUT_TRACE_KIND_LOCK, 2020 * MS, 0, 2, QUT_TRACE_SAMPLE_BEGINS); // left by a jump, say
    take(QUT_TRACE_KIND_CPU, 2030 * MS, 0, 1, 0);
    take(QUT_TRACE_KIND_POLL, 2040 * MS, 0, 2, QUT_TRACE_SAMPLE_BEGINS); // around the next two
    take(QUT_TRACE_KIND_READ, 2050 * MS, 0, 3, QUT_TRACE_SAMPLE_BEGINS);
    take_end(QUT_TRACE_KIND_POLL, 2040 * MS, 2060 * MS, 0, 2);
    take(QUT_TRACE_KIND_SLEEP, 2100 * MS, 0, 3, QUT_TRACE_SAMPLE_BEGINS);
    finish();
    const bool open[] = {false, false, true, false, false, true, false, true};
    for (size_t i = 0; i < 8; i++)
        ck_assert_msg(trace.samples[i].is_open == open[i], "sample %zu", i);
    // The read within the poll was left when that ended at the latest: the poll's end is its own.
    expect(MEASURE_BLOCKED, 8, (const uint64_t[]){0, 2000 * MS, 10 * MS, 0, 0, 0, 20 * MS, 2900 * MS});
    expect(MEASURE_WALL, 8,
           (const uint64_t[]){0, 2010 * MS, 10 * MS, 10 * MS, 10 * MS, 0, 10 * MS + 40 * MS, 2900 * MS});
}
END_TEST

static void wait_for(uint64_t lock, uint64_t from_ns, uint64_t to_ns, uint32_t owner, uint64_t flow, uint32_t node)
{
    take_end(QUT_TRACE_KIND_LOCK, from_ns, to_ns, 0, node);
    build_extra(&build, QUT_TRACE_EXTRA_LOCK, lock);
    build_extra(&build, QUT_TRACE_EXTRA_OWNER_TID, owner);
    if (flow)
        build_extra(&build, QUT_TRACE_EXTRA_FLOW, flow);
}

START_TEST(who_waits_for_whom)
{
    uint32_t waits = build_label(&build, 0, "waits"), gives = build_label(&build, 0, "gives");
    uint32_t waits_long = build_label(&build, 0, "waits long");
    build_thread(&build, 11, "waiter", 0, UINT64_MAX);
    wait_for(0x1000, 10, 20, 12, 1, waits);
    wait_for(0x1000, 30, 70, 12, 2, waits_long);
    wait_for(0x2000, 80, 85, 99, 0, waits); // an unknown thread
    build_thread(&build, 12, "gone", 0, 5); // had the tid before
    build_thread(&build, 12, "owner", 6, UINT64_MAX);
    take(QUT_TRACE_KIND_UNLOCK, 19, 0, gives, 0);
    build_extra(&build, QUT_TRACE_EXTRA_FLOW, 1);
    take(QUT_TRACE_KIND_UNLOCK, 69, 0, gives, 0);
    build_extra(&build, QUT_TRACE_EXTRA_FLOW, 2);
    finish();
    struct intervals intervals;
    struct lock_wait_list waited;
    struct blocked_list blocked;
    ck_assert_int_eq(analysis_intervals_make(&intervals, &trace), 0);
    ck_assert_int_eq(analysis_lock_waits_make(&waited, &trace, &intervals), 0);
    ck_assert_uint_eq(waited.count, 2);
    const struct lock_wait *wait = &waited.items[0];
    ck_assert_uint_eq(wait->lock, 0x1000);
    ck_assert_uint_eq(wait->waiter, 0);
    ck_assert_uint_eq(wait->owner, 2);
    ck_assert_uint_eq(wait->waker, 2);
    ck_assert_uint_eq(wait->count, 2);
    ck_assert_uint_eq(wait->total_ns, 50);
    ck_assert_uint_eq(wait->longest_ns, 40);
    ck_assert_uint_eq(wait->node, waits_long);
    ck_assert_uint_eq(wait->release_node, gives);
    ck_assert_uint_eq(waited.items[1].owner, TRACE_NONE);
    ck_assert_uint_eq(waited.items[1].release_node, TRACE_NONE);
    ck_assert_uint_eq(intervals.items[2].owner_tid, 99);
    ck_assert_int_eq(analysis_blocked_make(&blocked, &trace, &intervals), 0);
    ck_assert_uint_eq(blocked.count, 2);
    ck_assert_uint_eq(blocked.items[0].total_ns, 40);
    ck_assert_uint_eq(blocked.items[1].total_ns, 15);
    ck_assert_uint_eq(blocked.items[1].count, 2);
    analysis_blocked_free(&blocked);
    analysis_lock_waits_free(&waited);
    analysis_intervals_free(&intervals);
}
END_TEST

// Counters grow between samples of any kind; it is the allocations that say where.
START_TEST(allocations_get_what_grew)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.metric_mask = 1u << QUT_TRACE_METRIC_ALLOCATIONS | 1u << QUT_TRACE_METRIC_ALLOCATED_BYTES |
                        1u << QUT_TRACE_METRIC_MINOR_FAULTS;
    const unsigned kinds[] = {QUT_TRACE_KIND_CPU, QUT_TRACE_KIND_ALLOCATE, QUT_TRACE_KIND_CPU, QUT_TRACE_KIND_FAULT,
                              QUT_TRACE_KIND_ALLOCATE};
    for (unsigned i = 0; i < 5; i++) {
        take(kinds[i], (i + 1) * 10, 0, 0, 0);
        build_metrics(&build, (const uint64_t[QUT_TRACE_METRIC_COUNT]){
                                  [QUT_TRACE_METRIC_ALLOCATIONS] = 10 * i,
                                  [QUT_TRACE_METRIC_ALLOCATED_BYTES] = 1000 * i,
                                  [QUT_TRACE_METRIC_MINOR_FAULTS] = i,
                              });
    }
    finish();
    expect(MEASURE_ALLOCATIONS, 5, (const uint64_t[]){0, 10, 0, 0, 30});
    expect(MEASURE_BYTES, 5, (const uint64_t[]){0, 1000, 0, 0, 3000});
    expect(MEASURE_FAULTS, 5, (const uint64_t[]){0, 0, 0, 3, 0});
}
END_TEST

START_TEST(hot_spots_of_nodes)
{
    uint32_t outer = build_label(&build, 0, "outer"), inner = build_label(&build, outer, "inner");
    uint32_t unused = build_label(&build, outer, "unused");
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    for (unsigned i = 0; i < 10; i++)
        take(QUT_TRACE_KIND_CPU, 10 * i + 10, 0, i < 7 ? inner : outer, 0);
    finish();
    struct hot_spots spots;
    find_spots(&spots, MEASURE_SAMPLES, false);
    ck_assert_uint_eq(spots.basis.sum, 10);
    ck_assert_uint_eq(spots.own, 0);
    ck_assert_double_eq_tol(spots.own_error, 0.3, 1e-9); // none of 10 was met
    ck_assert_double_eq_tol(spots.basis.ticks, 10, 1e-9);
    ck_assert_uint_eq(spots.samples, 10);
    ck_assert_uint_eq(spots.count, 3); // with the root
    ck_assert_uint_eq(spots.items[0].node, inner);
    ck_assert_uint_eq(spots.items[0].self, 7);
    ck_assert_uint_eq(spots.items[1].node, outer);
    ck_assert_uint_eq(spots.items[1].self, 3);
    ck_assert_uint_eq(spots.items[1].total, 10);
    for (size_t i = 0; i < spots.count; i++)
        ck_assert_uint_ne(spots.items[i].node, unused);
    analysis_hot_spots_free(&spots);
}
END_TEST

// Ticks in the agent and in handlers of ticks are nobody else's; what a call in a hook used is the call's.
START_TEST(what_we_took_ourselves_is_no_part_of_shares)
{
    const struct trace_module of_agent = {
        .path = "/usr/lib/qut/libqut-agent.so", .code_base = 4096, .code_bytes = 4096};
    uint32_t agent = build_module(&build, &of_agent), outer = build_label(&build, 0, "outer");
    uint32_t hook = build_node(&build, outer, QUT_TRACE_CLASS_CODE, 0, agent, 16);
    uint32_t called = build_label(&build, hook, "real_malloc");
    uint32_t ticks = build_node(&build, 0, QUT_TRACE_CLASS_KERNEL, 0, TRACE_NONE, QUT_TRACE_KERNEL_OWN);
    const uint32_t nodes[10] = {outer, outer, outer, outer, outer, called, hook, hook, ticks, outer};
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    for (unsigned i = 0; i < 10; i++)
        take(QUT_TRACE_KIND_CPU, 10 * i + 10, 0, nodes[i], 0);
    take(QUT_TRACE_KIND_ALLOCATE, 120, 0, hook, 0);
    finish();
    struct hot_spots spots;
    find_spots(&spots, MEASURE_SAMPLES, false);
    ck_assert_uint_eq(spots.own, 3);
    ck_assert_uint_eq(spots.basis.sum, 8); // the allocation too
    ck_assert_double_eq_tol(spots.own_share, 3.0 / 11, 1e-9);
    ck_assert_double_eq_tol(spots.own_error, 3.0 / 11, 1e-6); // more than 1.96 sqrt(p (1 - p) / 11)
    for (size_t i = 0; i < spots.count; i++) {
        ck_assert_uint_ne(spots.items[i].node, ticks);
        ck_assert_uint_eq(spots.items[i].self, spots.items[i].node == outer ? 6 : spots.items[i].node == 0 ? 0 : 1);
    }
    analysis_hot_spots_free(&spots);
    find_spots(&spots, MEASURE_SAMPLES, true);
    ck_assert_uint_eq(spots.own, 3);
    ck_assert_uint_eq(spots.basis.sum, 11);
    analysis_hot_spots_free(&spots);
    find_spots(&spots, MEASURE_ALLOCATIONS, false);
    ck_assert_uint_eq(spots.own, 0);
    ck_assert_uint_eq(spots.basis.sum, 1);
    analysis_hot_spots_free(&spots);
}
END_TEST

// A coin that was thrown 10000 times: half of them, by no more than 1 % with a chance of 95 %.
START_TEST(errors_of_shares)
{
    const struct share_basis coin = {.sum = 10000, .ticks = 10000}, nothing = {0};
    ck_assert_double_eq_tol(analysis_share_error(&coin, 5000, 0), 0.0098, 1e-6);
    ck_assert_double_eq(analysis_share_error(&coin, 0, 0), 0);
    ck_assert_double_eq(analysis_share_error(&coin, 10000, 0), 0);
    ck_assert_double_eq(analysis_share_error(&nothing, 0, 0), 1);
}
END_TEST

// 1000 looks of the coarse clock, which met the kernel 200 times; and fine ticks, as many as one likes.
START_TEST(errors_of_what_two_clocks_told)
{
    const struct share_basis basis = {.sum = 1000, .told_sum = 200, .looks = 1000, .ticks = 1e12};
    double chance = 1.96 * sqrt(0.2 * 0.8 / 1000);
    ck_assert_double_eq_tol(analysis_share_error(&basis, 200, 200), chance, 1e-6); // all of the kernel
    ck_assert_double_eq_tol(analysis_share_error(&basis, 800, 0), chance, 1e-6);   // all that is not
    ck_assert_double_eq_tol(analysis_share_error(&basis, 1000, 200), 0, 1e-6);     // both
    ck_assert_double_eq_tol(analysis_share_error(&basis, 400, 0), chance / 2, 1e-6);
    ck_assert_double_eq_tol(analysis_share_error(&basis, 100, 100), 1.96 * sqrt(0.1 * 0.9 / 1000), 1e-6);
}
END_TEST

// Four samples of a thread whose kernel's tick told one: what they are worth.
START_TEST(what_samples_are_worth)
{
    uint32_t node = build_label(&build, 0, "f");
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    for (unsigned i = 0; i <= 4; i++)
        take(QUT_TRACE_KIND_CPU, 10 + 10 * i, 100 + 100 * i, node, 0);
    take(QUT_TRACE_KIND_CPU, 60, 900, node, 0);
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, 400);
    finish();
    struct hot_spots spots;
    find_spots(&spots, MEASURE_CPU, false);
    ck_assert_uint_eq(spots.basis.sum, 800);
    ck_assert_uint_eq(spots.basis.told_sum, 400);
    ck_assert_uint_eq(spots.items[0].self_told, 400);
    ck_assert_double_eq_tol(spots.basis.ticks, 4, 1e-9);
    ck_assert_double_eq_tol(spots.basis.looks, 2, 1e-9); // it met the kernel half of the time
    analysis_hot_spots_free(&spots);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("analysis");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, processor_time_goes_to_ticks);
    tcase_add_test(tests, processor_time_without_ticks);
    tcase_add_test(tests, blocked_time_is_counted_once);
    tcase_add_test(tests, open_intervals);
    tcase_add_test(tests, who_waits_for_whom);
    tcase_add_test(tests, allocations_get_what_grew);
    tcase_add_test(tests, hot_spots_of_nodes);
    tcase_add_test(tests, what_we_took_ourselves_is_no_part_of_shares);
    tcase_add_test(tests, errors_of_shares);
    tcase_add_test(tests, errors_of_what_two_clocks_told);
    tcase_add_test(tests, what_samples_are_worth);
    Suite *suite = suite_create("analysis");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
