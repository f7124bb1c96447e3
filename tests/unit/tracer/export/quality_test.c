// SPDX-License-Identifier: Apache-2.0
// How good a recording is called, of traces made by hand in which each share is known.
#include <string.h>

#include "formats/qut_agent.h"
#include "tests/support/golden/build.h"
#include "tests/support/run_suite.h"
#include "tracer/export/quality.h"

enum { MS = 1000000, KNOWN_PC = 0x1300, UNKNOWN_PC = 0x1999 };

static struct trace trace;
static struct build_trace build;
static struct names *names;
static struct quality quality;
static uint64_t now_ns;
static uint32_t program, main_node;
static char advice[4096];

static void begin(void)
{
    build_begin(&build, &trace);
    program = build_module(&build, &(struct trace_module){.path = "/opt/app/golden", .unload_ns = UINT64_MAX});
    main_node = build_node(&build, 0, QUT_TRACE_CLASS_CODE, 0, program, 0x1200);
    build_thread(&build, 1, "t", 0, UINT64_MAX);
    now_ns = 0;
    advice[0] = 0;
}

static void end(void)
{
    names_free(names);
    names = NULL;
    build_free(&trace);
}

static void take(unsigned ms, uint32_t node, unsigned flags)
{
    for (unsigned i = 0; i < ms; i++) {
        now_ns += MS;
        build_sample(&build, (struct trace_sample){.first_ns = now_ns,
                                                   .last_ns = now_ns,
                                                   .cpu_ns = now_ns,
                                                   .count = 1,
                                                   .node = node,
                                                   .kind = QUT_TRACE_KIND_CPU,
                                                   .flags = (uint16_t)flags});
    }
}

static uint32_t frame(uint64_t pc)
{
    return build_node(&build, main_node, QUT_TRACE_CLASS_CODE, QUT_TRACE_NODE_EXACT, program, pc);
}

static uint32_t kernel_frame(uint32_t caller, uint64_t code, const char *label)
{
    uint32_t node = build_node(&build, caller, QUT_TRACE_CLASS_KERNEL, QUT_TRACE_NODE_EXACT, TRACE_NONE, code);
    trace.nodes[node].label = label;
    return node;
}

static void add_advice(void *context, const char *text)
{
    (void)context;
    strncat(advice, text, sizeof advice - strlen(advice) - 1);
    strncat(advice, "\n", sizeof advice - strlen(advice) - 1);
}

static void judge(void)
{
    trace.has_cpu_time = true;
    build_end(&build);
    names = names_of(&trace, NULL, NULL);
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(export_quality_make(&quality, &trace, names), 0);
    export_quality_advise(&quality, add_advice, NULL);
}

// The first sample's own time is not known: it begins where the thread does.
static void expect_share(enum quality_aspect aspect, double wanted)
{
    ck_assert_double_eq_tol(export_quality_share(&quality, aspect), wanted, 0.002);
}

START_TEST(all_is_good)
{
    char line[512];
    take(1001, frame(KNOWN_PC), 0);
    judge();
    expect_share(QUALITY_WHOLE, 1);
    expect_share(QUALITY_NAMED, 1);
    expect_share(QUALITY_KERNEL, 0);
    ck_assert(export_quality_all_good(&quality));
    ck_assert_str_eq(advice, "");
    export_quality_line(&quality, line, sizeof line);
    ck_assert_str_eq(line, "good: 100.0 % of processor time with the whole stack, 100.0 % with a name, 0.0 % in the "
                           "kernel, 0.0 % in code made at run time, 0.0 % of samples lost");
}
END_TEST

// Neither in what it is of, nor the kernel's on its behalf: the shares are those of the functions.
START_TEST(what_the_agent_takes_is_no_time_of_the_program)
{
    uint32_t agent = build_module(&build, &(struct trace_module){.path = "/lib/" AGENT_FILE, .unload_ns = UINT64_MAX});
    uint32_t hook = build_node(&build, main_node, QUT_TRACE_CLASS_CODE, 0, agent, KNOWN_PC);
    take(301, frame(KNOWN_PC), 0);
    take(100, kernel_frame(main_node, QUT_TRACE_KERNEL_FAULT, "[kernel] page fault"), 0);
    take(200, hook, 0);
    take(400, kernel_frame(hook, QUT_TRACE_KERNEL_FAULT, "[kernel] page fault"), 0);
    judge();
    expect_share(QUALITY_KERNEL, 0.25);
    expect_share(QUALITY_NAMED, 1);
    ck_assert_uint_eq(quality.sum, 400 * (uint64_t)MS);
}
END_TEST

START_TEST(stacks_are_cut)
{
    uint32_t why = build_end_node(&build, 6, "[no unwind information covers the code]");
    take(701, frame(KNOWN_PC), 0);
    take(200, build_node(&build, why, QUT_TRACE_CLASS_CODE, 0, program, KNOWN_PC), QUT_TRACE_SAMPLE_CUT);
    take(100, frame(KNOWN_PC), QUT_TRACE_SAMPLE_CUT); // its innermost frames had no room
    judge();
    expect_share(QUALITY_WHOLE, 0.7);
    expect_share(QUALITY_NAMED, 1);
    ck_assert(!export_quality_all_good(&quality) && !export_quality_is_good(&quality, QUALITY_WHOLE));
    ck_assert(export_quality_is_good(&quality, QUALITY_NAMED));
    ck_assert_msg(strstr(advice, "30.0 % of this time has only a part of its stack, which ends before its root: 20.0 % "
                                 "[no unwind information covers the code] behind a; 10.0 % [no room] behind "
                                 "main") != NULL,
                  "%s", advice);
}
END_TEST

START_TEST(code_has_no_names)
{
    take(601, frame(KNOWN_PC), 0);
    take(400, frame(UNKNOWN_PC), 0);
    judge();
    expect_share(QUALITY_NAMED, 0.6);
    ck_assert(!export_quality_all_good(&quality));
    ck_assert_uint_eq(quality.unnamed_count, 1);
    ck_assert_str_eq(quality.unnamed[0].path, "/opt/app/golden");
    ck_assert_msg(strstr(advice, "40.0 % of this time has no names: /opt/app/golden (") != NULL, "%s", advice);
    ck_assert_ptr_nonnull(strstr(advice, "--debug-root"));
}
END_TEST

START_TEST(a_virtual_machine_made_it)
{
    build_module(&build, &(struct trace_module){.path = "/usr/lib/jvm/lib/server/libjvm.so", .unload_ns = UINT64_MAX});
    uint32_t why = build_end_node(&build, 3, "[in no known module]");
    take(301, frame(KNOWN_PC), 0);
    take(700, build_node(&build, why, QUT_TRACE_CLASS_RAW, 0, TRACE_NONE, 0x7f0000001000), QUT_TRACE_SAMPLE_CUT);
    judge();
    expect_share(QUALITY_RUN_TIME, 0.7);
    expect_share(QUALITY_NAMED, 0.3);
    ck_assert_str_eq(quality.machine, "java");
    ck_assert_msg(strstr(advice, "70.0 % of this time is in code made at run time by a virtual machine (java)") != NULL,
                  "%s", advice);
    ck_assert_uint_eq(quality.unnamed_count, 0);
}
END_TEST

START_TEST(a_virtual_machine_told_its_names)
{
    build_module(&build, &(struct trace_module){.path = "/usr/lib/jvm/lib/server/libjvm.so", .unload_ns = UINT64_MAX});
    uint32_t made = build_module(&build, &(struct trace_module){.path = "app.Main.run",
                                                                .flags = QUT_TRACE_MODULE_JIT,
                                                                .start = 0x7f0000001000,
                                                                .start_vaddr = 0x7f0000001000,
                                                                .code_bytes = 0x1000,
                                                                .unload_ns = UINT64_MAX});
    take(301, frame(KNOWN_PC), 0);
    take(400, build_node(&build, main_node, QUT_TRACE_CLASS_JIT, 0, made, 0x7f0000001010), 0);
    take(300, build_node(&build, main_node, QUT_TRACE_CLASS_RAW, 0, made, 0x7f0000001020), 0);
    judge();
    expect_share(QUALITY_RUN_TIME, 0.7);
    expect_share(QUALITY_NAMED, 1);
    ck_assert_msg(export_quality_all_good(&quality), "%s", advice);
}
END_TEST

START_TEST(time_in_the_kernel_is_no_fault)
{
    take(501, frame(KNOWN_PC), 0);
    take(500, kernel_frame(frame(UNKNOWN_PC), QUT_TRACE_KERNEL_CALLS + 1, "[kernel] write"), 0);
    judge();
    expect_share(QUALITY_KERNEL, 0.5);
    expect_share(QUALITY_NAMED, 1);
    ck_assert_msg(export_quality_all_good(&quality), "%s", advice);
}
END_TEST

START_TEST(what_sampling_took_is_not_the_programs)
{
    take(801, frame(KNOWN_PC), 0);
    take(100, frame(UNKNOWN_PC), 0);
    take(100, kernel_frame(main_node, QUT_TRACE_KERNEL_OWN, "[qut] ticks"), 0);
    judge();
    expect_share(QUALITY_KERNEL, 0);
    expect_share(QUALITY_NAMED, 800.0 / 900);
}
END_TEST

START_TEST(ticks_are_late_and_samples_lost)
{
    static struct trace_note notes[] = {
        {.name = "ticks-due", .value = 544}, {.name = "ticks-late", .value = 378}, {.name = "ticks-lost", .value = 11}};
    take(1000, frame(KNOWN_PC), 0);
    trace.notes = notes;
    trace.note_count = 3;
    judge();
    trace.notes = NULL;
    trace.note_count = 0;
    expect_share(QUALITY_LATE, 378.0 / 544);
    expect_share(QUALITY_LOST, 11.0 / 1011);
    ck_assert(!export_quality_is_good(&quality, QUALITY_LATE) && !export_quality_is_good(&quality, QUALITY_LOST));
    ck_assert_msg(strstr(advice, "69.5 % of ticks came late") != NULL, "%s", advice);
    ck_assert_msg(strstr(advice, "1.1 % of samples are lost") != NULL, "%s", advice);
}
END_TEST

START_TEST(nothing_is_no_good)
{
    char line[512];
    judge();
    ck_assert(!export_quality_all_good(&quality));
    export_quality_line(&quality, line, sizeof line);
    ck_assert_str_eq(line, "no time was sampled");
    ck_assert_str_eq(advice, "");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("quality");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, all_is_good);
    tcase_add_test(tests, what_the_agent_takes_is_no_time_of_the_program);
    tcase_add_test(tests, stacks_are_cut);
    tcase_add_test(tests, code_has_no_names);
    tcase_add_test(tests, a_virtual_machine_made_it);
    tcase_add_test(tests, a_virtual_machine_told_its_names);
    tcase_add_test(tests, time_in_the_kernel_is_no_fault);
    tcase_add_test(tests, what_sampling_took_is_not_the_programs);
    tcase_add_test(tests, ticks_are_late_and_samples_lost);
    tcase_add_test(tests, nothing_is_no_good);
    Suite *suite = suite_create("quality");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
