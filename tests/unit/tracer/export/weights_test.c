// SPDX-License-Identifier: Apache-2.0
// What samples count for, where they overlap, are far apart, or come from allocations; and equal stacks of several
// threads as one line.
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"
#include "tracer/export/sink/sink.h"
#include "tracer/export/weight_words.h"

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

static struct trace_sample *take(uint64_t first_ns, uint64_t last_ns, uint32_t count, uint32_t node)
{
    return build_sample(
        &build,
        (struct trace_sample){
            .first_ns = first_ns, .last_ns = last_ns, .count = count, .node = node, .kind = QUT_TRACE_KIND_CPU});
}

// From thread 0.
static void expect(unsigned weight, size_t count, const uint64_t *wanted)
{
    struct weights_walk walk;
    struct weights weights;
    const struct trace_sample *sample;
    build_end(&build);
    analysis_weights_begin(&walk, &trace, &trace.threads[0]);
    for (size_t i = 0; i < count; i++) {
        ck_assert(analysis_weights_next(&walk, &sample, &weights));
        ck_assert_ptr_eq(sample, &trace.samples[i]);
        ck_assert_msg(weights.of[weight] == wanted[i], "sample %zu: %ju instead of %ju", i,
                      (uintmax_t)weights.of[weight], (uintmax_t)wanted[i]);
    }
    ck_assert(!analysis_weights_next(&walk, &sample, &weights));
}

START_TEST(time_to_the_next)
{
    build_thread(&build, 1, "t", 50, UINT64_MAX);
    take(100, 100, 1, 0);
    take(110, 150, 5, 0);
    take(200, 230, 2, 0); // the last one: what is known of it
    expect(EXPORT_WEIGHT_TIME, 3, (const uint64_t[]){10, 90, 30});
}
END_TEST

START_TEST(time_of_intervals)
{
    build_thread(&build, 1, "t", 50, UINT64_MAX);
    take(100, 100, 1, 0);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 80); // began before the thread did
    take(200, 200, 1, 0);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 40); // from 160 on
    take(210, 210, 1, 0);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 100); // began before the one before it: that one's time is its own
    take(220, 220, 1, 0);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, UINT64_MAX);
    expect(EXPORT_WEIGHT_TIME, 4, (const uint64_t[]){110, 40, 10, 10});
}
END_TEST

START_TEST(time_of_nested_runs)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    take(100, 200, 10, 0);
    take(150, 150, 1, 0)->level = 1; // in a signal, within the run
    take(300, 300, 1, 0);
    expect(EXPORT_WEIGHT_TIME, 3, (const uint64_t[]){100, 100, 0}); // 200 in all: none twice
}
END_TEST

START_TEST(time_up_to_gaps)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    take(100, 100, 1, 0);
    take(200, 200, 1, 0);
    take(300, 300, 1, 0);
    build_gap(&build, TRACE_GAP_LOST, 10, 20, 1);
    build_gap(&build, TRACE_GAP_LOST, 130, 140, 1);
    build_gap(&build, TRACE_GAP_LOST, 150, 160, 1);
    build_gap(&build, TRACE_GAP_LOST, 200, 250, 1);
    expect(EXPORT_WEIGHT_TIME, 3, (const uint64_t[]){30, 0, 0});
}
END_TEST

// Samples usually come every 10 ms: 100 ms without one are time off the processor.
START_TEST(time_where_samples_are_far_apart)
{
    enum { MS = 1000000 };
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    for (unsigned i = 1; i <= 5; i++)
        take(i * 10 * MS, i * 10 * MS, 1, 0);
    take(150 * MS, 160 * MS, 2, 0); // 100 ms later: just not too far
    take(261 * MS, 261 * MS, 1, 0);
    take(271 * MS, 271 * MS, 1, 0);
    expect(EXPORT_WEIGHT_TIME, 8,
           (const uint64_t[]){10 * MS, 10 * MS, 10 * MS, 10 * MS, 100 * MS, 10 * MS, 10 * MS, 0});
}
END_TEST

START_TEST(processor_time)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(100, 100, 1, 0)->cpu_ns = 1000; // since when is not known
    take(200, 200, 1, 0)->cpu_ns = 1050;
    take(300, 300, 1, 0)->cpu_ns = 1040; // a clock that goes back
    take(400, 400, 1, 0)->cpu_ns = 1060;
    expect(EXPORT_WEIGHT_CPU_TIME, 4, (const uint64_t[]){0, 50, 0, 20});
}
END_TEST

// A thread that stood at one place from its first tick on.
START_TEST(processor_time_of_a_first_run)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(100, 500, 5, 0)->cpu_ns = 1000;
    take(600, 600, 1, 0)->cpu_ns = 1070;
    expect(EXPORT_WEIGHT_CPU_TIME, 2, (const uint64_t[]){400, 70});
}
END_TEST

START_TEST(a_first_run_is_no_longer_than_its_thread)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(100, 500, 5, 0)->cpu_ns = 300;
    expect(EXPORT_WEIGHT_CPU_TIME, 1, (const uint64_t[]){300});
}
END_TEST

// A tick in user mode stands for all before it; one that met the kernel says how much it stands for: the ticks behind
// it had been given that time, or are.
START_TEST(processor_time_that_is_told)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(100, 100, 1, 0)->cpu_ns = 1000;
    take(200, 200, 1, 0)->cpu_ns = 1010;
    take(300, 300, 1, 0)->cpu_ns = 1020;
    take(310, 310, 1, 0)->cpu_ns = 1025;
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, 20);
    take(400, 400, 1, 0)->cpu_ns = 1035; // 15 were taken too early: 10 of them come from here
    take(500, 500, 1, 0)->cpu_ns = 1045;
    take(600, 600, 1, 0)->cpu_ns = 1060;
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, 5); // the rest of its time was spent in user mode
    take(700, 700, 1, 0)->cpu_ns = 1061;
    expect(EXPORT_WEIGHT_CPU_TIME, 8, (const uint64_t[]){0, 10, 10, 20, 0, 5, 5, 11});
}
END_TEST

// Sums are exact, also where a thread ends right behind the kernel's tick.
START_TEST(no_more_is_told_than_there_was)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    trace.has_cpu_time = true;
    take(100, 100, 1, 0)->cpu_ns = 1000;
    take(200, 200, 1, 0)->cpu_ns = 1010;
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, 30);
    take(300, 300, 1, 0)->cpu_ns = 1020;
    take(400, 400, 1, 0)->cpu_ns = 1030;
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, UINT64_MAX); // a damaged one tells nothing
    take(500, 500, 1, 0)->cpu_ns = 1040;
    build_extra(&build, QUT_TRACE_EXTRA_CPU_NS, 25);
    expect(EXPORT_WEIGHT_CPU_TIME, 5, (const uint64_t[]){0, 30, 0, 0, 10});
}
END_TEST

START_TEST(no_processor_time)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    take(100, 100, 1, 0)->cpu_ns = 1000;
    take(200, 200, 1, 0)->cpu_ns = 1050;
    expect(EXPORT_WEIGHT_CPU_TIME, 2, (const uint64_t[]){0, 0});
}
END_TEST

// Without the metric: what allocations say, and how many of them each stands for.
START_TEST(bytes_of_allocations)
{
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    take(100, 100, 1, 0)->kind = QUT_TRACE_KIND_ALLOCATE;
    build_extra(&build, QUT_TRACE_EXTRA_SIZE, 64);
    take(200, 200, 1, 0)->kind = QUT_TRACE_KIND_ALLOCATE;
    build_extra(&build, QUT_TRACE_EXTRA_SIZE, 10);
    build_extra(&build, QUT_TRACE_EXTRA_WEIGHT, 7);
    take(300, 300, 1, 0)->kind = QUT_TRACE_KIND_READ; // bytes, but none allocated
    build_extra(&build, QUT_TRACE_EXTRA_SIZE, 512);
    take(400, 400, 1, 0)->kind = QUT_TRACE_KIND_ALLOCATE;
    build_extra(&build, QUT_TRACE_EXTRA_SIZE, UINT64_MAX);
    build_extra(&build, QUT_TRACE_EXTRA_WEIGHT, 2);
    expect(EXPORT_WEIGHT_BYTES, 4, (const uint64_t[]){64, 70, 0, UINT64_MAX});
}
END_TEST

static const struct selection_wanted everything = {.kind = SELECTION_ALL, .to_ns = UINT64_MAX};

static void expect_collapsed(const char *wanted)
{
    struct base_error error = {0};
    struct names *names = names_of(&trace, &(struct names_options){0}, &error);
    struct sink *sink = sink_in_memory();
    const struct export_options options = {0};
    struct selection selection;
    size_t size;
    build_end(&build);
    ck_assert_int_eq(analysis_selection_make(&selection, &trace, &everything, &error), 0);
    ck_assert_int_eq(export_collapsed.write(&selection, names, &options, sink, &error), 0);
    analysis_selection_free(&selection);
    const uint8_t *text = sink_memory(sink, &size);
    ck_assert_msg(size == strlen(wanted) && memcmp(text, wanted, size) == 0, "%.*s instead of %s", (int)size,
                  (const char *)text, wanted);
    sink_close(sink, true, NULL);
    names_free(names);
}

// Different nodes, the same names; threads of the same name; a stack of one thread only.
START_TEST(equal_lines)
{
    uint32_t first = build_label(&build, build_label(&build, 0, "b"), "c");
    uint32_t second = build_label(&build, build_label(&build, 0, "b"), "c");
    uint32_t other = build_label(&build, 0, "a");
    build_thread(&build, 1, "pool", 0, UINT64_MAX);
    take(100, 100, 1, first);
    take(200, 200, 2, second);
    build_thread(&build, 2, "main", 0, UINT64_MAX);
    take(100, 100, 1, 0);
    build_thread(&build, 3, "pool", 0, UINT64_MAX);
    take(100, 100, 4, second);
    take(100, 100, 8, other);
    expect_collapsed("main 1\npool;a 8\npool;b;c 7\n");
}
END_TEST

START_TEST(nothing)
{
    build_thread(&build, 1, "pool", 0, UINT64_MAX);
    expect_collapsed("");
}
END_TEST

// No thread at all, and a thread without samples: every format of one file but Nanoscope and that of calls has a way to
// say so.
START_TEST(every_format_of_nothing)
{
    for (unsigned threads = 0; threads < 2; threads++) {
        if (threads)
            build_thread(&build, 1, "pool", 0, UINT64_MAX);
        for (unsigned i = 0; export_formats[i]; i++) {
            if (export_formats[i]->is_folder)
                continue;
            struct base_error error = {0};
            struct names *names = names_of(&trace, &(struct names_options){0}, &error);
            struct sink *sink = sink_in_memory();
            const struct export_options options = {.weight = export_formats[i]->weight};
            struct selection selection;
            ck_assert_int_eq(analysis_selection_make(&selection, &trace, &everything, &error), 0);
            int status = export_formats[i]->write(&selection, names, &options, sink, &error);
            analysis_selection_free(&selection);
            bool cannot = export_formats[i] == &export_nanoscope || export_formats[i] == &export_replay;
            ck_assert_msg(status == (cannot ? -1 : 0), "%s", export_formats[i]->name);
            ck_assert_int_eq(sink_close(sink, true, NULL), 0);
            names_free(names);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("weights");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, time_to_the_next);
    tcase_add_test(tests, time_of_intervals);
    tcase_add_test(tests, time_of_nested_runs);
    tcase_add_test(tests, time_up_to_gaps);
    tcase_add_test(tests, time_where_samples_are_far_apart);
    tcase_add_test(tests, processor_time);
    tcase_add_test(tests, processor_time_of_a_first_run);
    tcase_add_test(tests, a_first_run_is_no_longer_than_its_thread);
    tcase_add_test(tests, processor_time_that_is_told);
    tcase_add_test(tests, no_more_is_told_than_there_was);
    tcase_add_test(tests, no_processor_time);
    tcase_add_test(tests, bytes_of_allocations);
    tcase_add_test(tests, equal_lines);
    tcase_add_test(tests, nothing);
    tcase_add_test(tests, every_format_of_nothing);
    Suite *suite = suite_create("export");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
