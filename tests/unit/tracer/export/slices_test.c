// SPDX-License-Identifier: Apache-2.0
// Samples to slices: small traces against what must come out, word for word.
#include "tracer/export/slices.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"

// ---- what happened, as text: "10 +main +a | 20 -a"

struct journal {
    const struct names *names;
    const struct trace *trace;
    char text[4096];
    size_t size;
    uint64_t time_ns;
    bool has_time;
};

static void add(struct journal *journal, uint64_t time_ns, const char *prefix, const char *word)
{
    char *at = journal->text + journal->size;
    size_t room = sizeof journal->text - journal->size;
    if (!journal->has_time || time_ns != journal->time_ns)
        snprintf(at, room, "%s%ju", journal->has_time ? " | " : "", (uintmax_t)time_ns);
    journal->size += strlen(at);
    snprintf(journal->text + journal->size, sizeof journal->text - journal->size, " %s%s", prefix, word);
    journal->size += strlen(journal->text + journal->size);
    journal->time_ns = time_ns;
    journal->has_time = true;
}

static bool note_enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    struct journal *journal = context;
    add(journal, time_ns, "+", names_at(journal->names, node, index)->function);
    return true;
}

static bool note_leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    struct journal *journal = context;
    add(journal, time_ns, "-", names_at(journal->names, node, index)->function);
    return true;
}

static bool note_sample(void *context, const struct trace_sample *sample)
{
    add(context, sample->first_ns, "", "sample");
    return true;
}

static bool note_mark(void *context, const struct trace_mark *mark)
{
    add(context, mark->time_ns, "", mark->name);
    return true;
}

static bool note_gap(void *context, const struct trace_gap *gap)
{
    add(context, gap->from_ns, "", "gap");
    return true;
}

// ---- traces of a few samples; in the program, 0x1200 is main, 0x1300 a, 0x1400 b::b, 0x1500 outer, middle and inner

static struct trace trace;
static struct build_trace build;
static uint32_t in_main, in_a;

static uint32_t node(uint32_t parent, uint64_t pc)
{
    return build_node(&build, parent, QUT_TRACE_CLASS_CODE, 0, 0, pc);
}

static void set_up(void)
{
    build_begin(&build, &trace);
    struct trace_module program = {.path = "/opt/app/golden", .start = 0x1000, .code_bytes = 0x10000};
    build_module(&build, &program);
    in_main = node(0, 0x1200);
    in_a = node(in_main, 0x1300);
    build_thread(&build, 1, "one", 0, UINT64_MAX);
}

static void tear_down(void)
{
    build_free(&trace);
}

static void sample_run(uint64_t first_ns, uint64_t last_ns, uint32_t in, unsigned level)
{
    build_sample(&build, (struct trace_sample){.first_ns = first_ns,
                                               .last_ns = last_ns,
                                               .node = in,
                                               .count = first_ns == last_ns ? 1 : 2,
                                               .metrics = TRACE_NONE,
                                               .level = (uint8_t)level});
}

static void sample(uint64_t time_ns, uint32_t in)
{
    sample_run(time_ns, time_ns, in, 0);
}

static void expect(uint64_t gap_ns, const char *wanted)
{
    static struct journal journal;
    struct base_error error = {0};
    build_end(&build);
    journal = (struct journal){.names = names_of(&trace, &(struct names_options){0}, &error), .trace = &trace};
    ck_assert_ptr_nonnull(journal.names);
    struct slice_events events = {&journal, note_enter, note_leave, note_sample, note_mark, note_gap};
    ck_assert(
        export_slices_of_thread(&trace, journal.names, &trace.threads[0], &(struct slice_options){gap_ns}, &events));
    ck_assert_str_eq(journal.text, wanted);
    names_free((struct names *)journal.names);
}

START_TEST(common_part_goes_on)
{
    sample(10, in_a);
    sample(20, in_main);
    sample(30, in_a);
    expect(0, "10 +main +a sample | 20 -a sample | 30 +a sample -a -main");
}
END_TEST

START_TEST(function_goes_on_at_another_place)
{
    uint32_t callee = node(in_a, 0x1400);
    uint32_t other_place = build_node(&build, in_main, QUT_TRACE_CLASS_CODE, QUT_TRACE_NODE_EXACT, 0, 0x1300);
    sample(10, callee);
    sample(20, other_place); // the same function a, elsewhere in it
    sample(30, node(other_place, 0x1400));
    expect(0, "10 +main +a +b::b(std::vector<int, std::allocator<int> > const&) sample"
              " | 20 -b::b(std::vector<int, std::allocator<int> > const&) sample"
              " | 30 +b::b(std::vector<int, std::allocator<int> > const&) sample"
              " -b::b(std::vector<int, std::allocator<int> > const&) -a -main");
}
END_TEST

START_TEST(called_from_another_place_is_another_call)
{
    uint32_t one = node(in_main, 0x1300), other = node(in_a, 0x1300);
    uint32_t elsewhere = build_node(&build, in_main, QUT_TRACE_CLASS_CODE, QUT_TRACE_NODE_GUESSED, 0, 0x1300);
    (void)one;
    sample(10, other);
    sample(20, node(elsewhere, 0x1300));
    expect(0, "10 +main +a +a sample | 20 -a +a sample -a -a -main");
}
END_TEST

START_TEST(inlined_functions)
{
    uint32_t inlined = node(in_main, 0x1500);
    sample(10, inlined);
    sample(20, in_main);
    sample(30, build_node(&build, in_main, QUT_TRACE_CLASS_CODE, QUT_TRACE_NODE_EXACT, 0, 0x1500));
    sample(40, inlined);
    expect(0, "10 +main +outer +middle +inner sample | 20 -inner -middle -outer sample"
              " | 30 +outer +middle +inner sample | 40 sample -inner -middle -outer -main");
}
END_TEST

START_TEST(marks_cut)
{
    sample(10, in_a);
    build_mark(&build, QUT_TRACE_MARK_INSTANT, 15, 0, "instant");
    build_mark(&build, QUT_TRACE_MARK_BEGIN, 20, 1, "begin");
    build_mark(&build, QUT_TRACE_MARK_COUNTER, 22, 1, "counter");
    sample(25, in_a);
    build_mark(&build, QUT_TRACE_MARK_END, 30, 1, "end");
    sample(30, in_main); // before the end
    build_mark(&build, QUT_TRACE_MARK_BEGIN, 40, 2, "late");
    expect(0, "10 +main +a sample | 15 instant | 20 -a -main begin +main +a | 22 counter | 25 sample"
              " | 30 -a sample -main end | 40 late");
}
END_TEST

START_TEST(begin_before_its_sample)
{
    build_mark(&build, QUT_TRACE_MARK_BEGIN, 10, 1, "begin");
    sample(10, in_main);
    sample(20, in_main);
    expect(0, "10 begin +main sample | 20 sample -main");
}
END_TEST

START_TEST(gaps_cut)
{
    sample(10, in_main);
    build_gap(&build, TRACE_GAP_LOST, 15, 25, 7);
    sample(30, in_main);
    sample(40, in_main);
    expect(0, "10 +main sample | 15 -main gap | 30 +main sample | 40 sample -main");
}
END_TEST

START_TEST(long_distances_cut)
{
    sample(10, in_main);
    sample(20, in_main);
    sample(31, in_main);
    sample_run(40, 90, in_main, 0); // a run has samples all along
    sample(95, in_main);
    expect(10, "10 +main sample | 20 sample -main | 31 +main sample | 40 sample | 95 sample -main");
}
END_TEST

// A signal's sample within a run: the run's stack is there again afterwards.
START_TEST(levels)
{
    sample_run(10, 50, in_a, 0);
    sample_run(20, 30, in_main, 1);
    sample(60, in_main);
    expect(0, "10 +main +a sample | 20 -a sample | 50 +a | 60 -a sample -main");
}
END_TEST

START_TEST(intervals)
{
    sample(10, in_main);
    sample(50, in_a);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 20);
    sample(60, in_main);
    sample(70, in_a); // began before the sample before it
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 1000);
    sample(80, in_main);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 5);
    build_extra(&build, QUT_TRACE_EXTRA_BEGIN_NODE, in_a);
    sample(90, in_main);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 5);
    build_extra(&build, QUT_TRACE_EXTRA_BEGIN_NODE, 1u << 30); // of no node
    expect(0, "10 +main sample | 30 +a | 50 sample | 60 -a sample +a | 70 sample | 80 -a sample | 90 sample -main");
}
END_TEST

START_TEST(a_long_wait_is_no_gap)
{
    sample(10, in_main);
    sample(1000, in_a);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 985);
    expect(10, "10 +main sample | 15 +a | 1000 sample -a -main");
}
END_TEST

START_TEST(a_wait_from_before_the_last_sample)
{
    sample(10, in_main);
    sample(15, in_a);
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 9);
    expect(10, "10 +main sample +a | 15 sample -a -main");
}
END_TEST

START_TEST(nothing)
{
    expect(0, "");
}
END_TEST

START_TEST(no_frames)
{
    sample(10, in_main);
    sample(20, 0);
    sample(30, in_main);
    expect(0, "10 +main sample | 20 -main sample | 30 +main sample -main");
}
END_TEST

START_TEST(gap_of_a_thread)
{
    ck_assert_uint_eq(analysis_weights_gap_ns(&trace, &trace.threads[0]), 20000000);
    for (unsigned i = 0; i < 1000; i++)
        sample(i * 10000000ull, in_main);
    build_end(&build);
    ck_assert_uint_eq(analysis_weights_gap_ns(&trace, &trace.threads[0]), 100000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slices");
    TCase *tests = tcase_create("slices");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, common_part_goes_on);
    tcase_add_test(tests, function_goes_on_at_another_place);
    tcase_add_test(tests, called_from_another_place_is_another_call);
    tcase_add_test(tests, inlined_functions);
    tcase_add_test(tests, marks_cut);
    tcase_add_test(tests, begin_before_its_sample);
    tcase_add_test(tests, gaps_cut);
    tcase_add_test(tests, long_distances_cut);
    tcase_add_test(tests, levels);
    tcase_add_test(tests, intervals);
    tcase_add_test(tests, a_long_wait_is_no_gap);
    tcase_add_test(tests, a_wait_from_before_the_last_sample);
    tcase_add_test(tests, nothing);
    tcase_add_test(tests, no_frames);
    tcase_add_test(tests, gap_of_a_thread);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
