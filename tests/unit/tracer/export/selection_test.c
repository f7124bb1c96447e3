// SPDX-License-Identifier: Apache-2.0
// What is selected of a trace, what it counts for, and where the agent's frames go.
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"
#include "tracer/analysis/agent_frames.h"
#include "tracer/analysis/selection.h"

static struct trace trace;
static struct build_trace build;
static struct selection selection;

static void begin(void)
{
    build_begin(&build, &trace);
    trace.start_ns = 1000;
    trace.end_ns = 9000;
}

static void end(void)
{
    analysis_selection_free(&selection);
    build_free(&trace);
}

static struct trace_sample *take(uint64_t time_ns, uint16_t kind, uint32_t node)
{
    return build_sample(
        &build, (struct trace_sample){.first_ns = time_ns, .last_ns = time_ns, .count = 1, .node = node, .kind = kind});
}

static void choose(struct selection_wanted wanted)
{
    struct base_error error = {0};
    build_end(&build);
    trace.start_ns = 1000;
    trace.end_ns = 9000;
    analysis_selection_free(&selection);
    wanted.to_ns = wanted.to_ns ? wanted.to_ns : UINT64_MAX;
    ck_assert_int_eq(analysis_selection_make(&selection, &trace, &wanted, &error), 0);
}

static void mixed(void)
{
    build_thread(&build, 17, "worker-1", 1000, UINT64_MAX);
    trace.has_cpu_time = true;
    take(2000, QUT_TRACE_KIND_CPU, 0)->cpu_ns = 100;
    take(3000, QUT_TRACE_KIND_READ, 0)->cpu_ns = 200;
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 800);
    take(4000, QUT_TRACE_KIND_CPU, 0)->cpu_ns = 500;
    build_thread(&build, 18, "other", 1000, UINT64_MAX);
    take(5000, QUT_TRACE_KIND_LOCK, 0)->cpu_ns = 0;
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 2000);
    take(5100, QUT_TRACE_KIND_UNLOCK, 0);
}

START_TEST(kinds)
{
    mixed();
    choose((struct selection_wanted){.kind = SELECTION_MAIN});
    ck_assert_int_eq(selection.kind, SELECTION_CPU);
    ck_assert_int_eq(selection.measure, MEASURE_CPU);
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 400); // what went by in the read included
    ck_assert_uint_eq(selection.sums[MEASURE_SAMPLES], 2);
    ck_assert_uint_eq(selection.trace.thread_count, 2);
    choose((struct selection_wanted){.kind = SELECTION_LOCK});
    ck_assert_uint_eq(selection.trace.sample_count, 2);
    ck_assert_uint_eq(selection.sums[MEASURE_SAMPLES], 1); // the release is no wait
    ck_assert_uint_eq(selection.sums[MEASURE_BLOCKED], 2000);
    choose((struct selection_wanted){.kind = SELECTION_IO});
    ck_assert_uint_eq(selection.sums[MEASURE_BLOCKED], 800);
    choose((struct selection_wanted){.kind = SELECTION_WALL});
    ck_assert_uint_eq(selection.trace.sample_count, 0);
    choose((struct selection_wanted){.kind = SELECTION_ALL});
    ck_assert_uint_eq(selection.trace.sample_count, 5);
}
END_TEST

START_TEST(threads)
{
    mixed();
    const char *const of_worker[] = {"17", "worker-1", "worker-*", "*[1]"};
    for (size_t i = 0; i < sizeof of_worker / sizeof *of_worker; i++) {
        choose((struct selection_wanted){.kind = SELECTION_ALL, .thread = of_worker[i]});
        ck_assert_uint_eq(selection.trace.thread_count, 1);
        ck_assert_uint_eq(selection.trace.threads[0].tid, 17);
        ck_assert_uint_eq(selection.trace.sample_count, 3);
    }
    choose((struct selection_wanted){.kind = SELECTION_ALL, .thread = "worker"});
    ck_assert_uint_eq(selection.trace.thread_count, 0);
    choose((struct selection_wanted){.kind = SELECTION_ALL, .pids = &(uint32_t){4711}, .pid_count = 1});
    ck_assert_uint_eq(selection.trace.thread_count, 0);
}
END_TEST

START_TEST(time_cuts_runs_and_waits)
{
    build_thread(&build, 17, "t", 1000, UINT64_MAX);
    trace.has_cpu_time = true;
    struct trace_sample *run = take(2000, QUT_TRACE_KIND_CPU, 0);
    run->count = 11; // one each 100 ns
    run->last_ns = 3000;
    run->cpu_ns = 1100;
    take(6000, QUT_TRACE_KIND_POLL, 0)->cpu_ns = 1100;
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 2000);
    take(7000, QUT_TRACE_KIND_POLL, 0)->cpu_ns = 1100;
    build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, 500);
    choose((struct selection_wanted){.kind = SELECTION_CPU, .from_ns = 1500, .to_ns = 2000}); // 2500 to 2999
    ck_assert_uint_eq(selection.sums[MEASURE_SAMPLES], 5);
    ck_assert_uint_eq(selection.trace.samples[0].count, 5);
    ck_assert_uint_eq(selection.trace.samples[0].first_ns, 2500);
    ck_assert_uint_eq(selection.trace.samples[0].last_ns, 2900);
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 1000 * 5 / 11);
    choose((struct selection_wanted){.kind = SELECTION_IO, .from_ns = 3500, .to_ns = 4500}); // inside of the first wait
    ck_assert_uint_eq(selection.trace.sample_count, 1);
    ck_assert_uint_eq(selection.sums[MEASURE_BLOCKED], 1000);
    ck_assert_uint_eq(selection.trace.samples[0].last_ns, 5500);
    ck_assert_uint_eq(trace.samples[1].last_ns, 6000); // the trace stays what it was
    ck_assert_uint_eq(trace.extras[0].value, 2000);
}
END_TEST

START_TEST(frames_of_the_agent)
{
    uint32_t program = build_module(&build, &(struct trace_module){.path = "/bin/program"});
    uint32_t agent = build_module(&build, &(struct trace_module){.path = "/usr/lib/libqut-agent.so"});
    uint32_t main = build_node(&build, 0, QUT_TRACE_CLASS_CODE, 0, program, 1);
    uint32_t hook = build_node(&build, main, QUT_TRACE_CLASS_CODE, 0, agent, 2);
    uint32_t inner = build_node(&build, hook, QUT_TRACE_CLASS_CODE, 0, agent, 3);
    uint32_t called = build_node(&build, inner, QUT_TRACE_CLASS_CODE, 0, program, 4);
    uint32_t kernel = build_node(&build, inner, QUT_TRACE_CLASS_KERNEL, 0, TRACE_NONE, 16);
    build_thread(&build, 17, "t", 1000, UINT64_MAX);
    const uint32_t nodes[] = {main, inner, called, kernel};
    for (uint64_t i = 0; i < 4; i++)
        take(2000 + i, i == 0 || i == 2 ? QUT_TRACE_KIND_CPU : QUT_TRACE_KIND_POLL, nodes[i]);
    take(2010, QUT_TRACE_KIND_CPU, inner); // ticks that met sampling itself
    take(2011, QUT_TRACE_KIND_CPU, kernel);
    choose((struct selection_wanted){.kind = SELECTION_ALL});
    const struct trace_sample *samples = selection.trace.samples;
    ck_assert_uint_eq(selection.trace.sample_count, 4);
    ck_assert_uint_eq(samples[0].node, main);
    ck_assert_uint_eq(samples[1].node, hook); // what the program called
    ck_assert_uint_eq(samples[2].node, called);
    ck_assert_uint_eq(selection.trace.nodes[called].parent, main);
    ck_assert_uint_eq(selection.trace.nodes[called].depth, 2);
    ck_assert_uint_eq(samples[3].node, kernel);
    ck_assert_uint_eq(selection.trace.nodes[kernel].parent, hook);
    choose((struct selection_wanted){.kind = SELECTION_ALL, .show_agent = true});
    ck_assert_uint_eq(selection.trace.sample_count, 6);
    ck_assert_uint_eq(selection.trace.samples[1].node, inner);
    ck_assert_uint_eq(selection.trace.nodes[called].parent, inner);
    ck_assert_uint_eq(analysis_called_node(&trace, inner), hook);
}
END_TEST

static uint64_t number_of(uint64_t whose, uint32_t function)
{
    return whose << QUT_TRACE_NUMBER_SHIFT | function;
}

START_TEST(frames_of_interpreters)
{
    const enum qut_trace_class dex = QUT_TRACE_CLASS_DEX, code = QUT_TRACE_CLASS_CODE;
    const uint32_t none = TRACE_NONE;
    uint32_t program = build_module(&build, &(struct trace_module){.path = "/bin/program"});
    uint32_t main = build_node(&build, 0, code, 0, program, 1);
    uint32_t outer = build_node(&build, main, dex, 0, none, number_of(QUT_TRACE_NUMBER_PYTHON, 1));
    uint32_t inner = build_node(&build, outer, dex, 0, none, number_of(QUT_TRACE_NUMBER_PYTHON, 2));
    uint32_t evaluator = build_node(&build, inner, code, 0, program, 2);
    uint32_t kernel = build_node(&build, evaluator, QUT_TRACE_CLASS_KERNEL, 0, none, 16);
    uint32_t called = build_node(&build, evaluator, code, 0, program, 3);
    uint32_t method = build_node(&build, called, dex, 0, none, 0x7f0012345678); // Java's, by its address
    uint32_t machine = build_node(&build, method, QUT_TRACE_CLASS_JIT, 0, none, 0x7f0000001000);
    uint32_t script = build_node(&build, machine, dex, 0, none, number_of(QUT_TRACE_NUMBER_SCRIPT, 1));
    uint32_t builtin = build_node(&build, script, code, 0, program, 4);
    build_thread(&build, 17, "t", 1000, UINT64_MAX);
    const uint32_t nodes[] = {evaluator, kernel, called, machine, builtin};
    for (uint64_t i = 0; i < 5; i++)
        take(2000 + i, QUT_TRACE_KIND_CPU, nodes[i]);
    choose((struct selection_wanted){.kind = SELECTION_ALL});
    const struct trace_sample *samples = selection.trace.samples;
    const struct trace_node *shown = selection.trace.nodes;
    ck_assert_uint_eq(samples[0].node, inner); // its time is the function's
    ck_assert_uint_eq(samples[1].node, kernel);
    ck_assert_uint_eq(shown[kernel].parent, inner);
    ck_assert_uint_eq(shown[kernel].depth, 4);
    ck_assert_uint_eq(shown[called].parent, inner);
    ck_assert_uint_eq(shown[inner].parent, outer); // one evaluator runs both
    ck_assert_uint_eq(samples[3].node, method);
    ck_assert_uint_eq(shown[script].parent, method);
    ck_assert_uint_eq(samples[4].node, builtin); // which JavaScript has called
    ck_assert_uint_eq(shown[builtin].parent, script);
    choose((struct selection_wanted){.kind = SELECTION_ALL, .show_interpreters = true});
    ck_assert_uint_eq(selection.trace.samples[0].node, evaluator);
    ck_assert_uint_eq(selection.trace.nodes[called].parent, evaluator);
    ck_assert_uint_eq(selection.trace.nodes[called].depth, 5);
}
END_TEST

static void count_line(void *context, const char *text)
{
    ck_assert_uint_gt(strlen(text), 0);
    ++*(unsigned *)context;
    if (strncmp(text, "kinds:", 6) == 0)
        ck_assert_str_eq(text, "kinds: cpu (2 samples) lock (2 samples) io (1 samples)");
}

// A thread that no tick met, beside one that some did: none of its samples is where it used its time.
START_TEST(time_that_no_tick_met)
{
    uint32_t untold = build_node(&build, 0, QUT_TRACE_CLASS_LABEL, 0, TRACE_NONE, 0);
    mixed();
    trace.nodes[untold].label = "[met by no tick]";
    trace.unticked_node = untold;
    build_thread(&build, 19, "short", 5000, 8000);
    take(5000, QUT_TRACE_KIND_THREAD_START, 0)->cpu_ns = 10;
    take(6000, QUT_TRACE_KIND_LOCK, 0)->cpu_ns = 300;
    take(8000, QUT_TRACE_KIND_THREAD_END, 0)->cpu_ns = 710;
    choose((struct selection_wanted){.kind = SELECTION_CPU});
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 400 + 700);
    ck_assert_uint_eq(selection.sums[MEASURE_SAMPLES], 2); // it is no tick
    const struct trace_thread *thread = &selection.trace.threads[2];
    ck_assert_uint_eq(thread->sample_count, 1);
    ck_assert_uint_eq(selection.trace.samples[thread->first_sample].node, untold);
    ck_assert_uint_eq(selection.weights[thread->first_sample][MEASURE_CPU], 700);
    choose((struct selection_wanted){.kind = SELECTION_ALL});
    ck_assert_uint_eq(selection.trace.sample_count, 5 + 3 + 1);
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 400 + 700);
    choose((struct selection_wanted){.kind = SELECTION_LOCK}); // "other", and the lock of "short"
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 0);
    choose((struct selection_wanted){.kind = SELECTION_CPU, .to_ns = 6000}); // it ended behind that
    ck_assert_uint_eq(selection.sums[MEASURE_CPU], 400);
}
END_TEST

START_TEST(what_there_is)
{
    unsigned lines = 0;
    mixed();
    build_end(&build);
    analysis_selection_say(&trace, count_line, &lines);
    ck_assert_uint_eq(lines, 3);
}
END_TEST

int main(void)
{
    TCase *checked = tcase_create("selection");
    tcase_add_checked_fixture(checked, begin, end);
    tcase_add_test(checked, kinds);
    tcase_add_test(checked, threads);
    tcase_add_test(checked, time_cuts_runs_and_waits);
    tcase_add_test(checked, frames_of_the_agent);
    tcase_add_test(checked, frames_of_interpreters);
    tcase_add_test(checked, time_that_no_tick_met);
    tcase_add_test(checked, what_there_is);
    Suite *suite = suite_create("selection");
    suite_add_tcase(suite, checked);
    return run_suite(suite);
}
