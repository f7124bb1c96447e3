// SPDX-License-Identifier: Apache-2.0
// Traces of several hosts put together: one clock, one module wherever a host had its file, each process called by
// where it is from, and no recording twice.
#include <stdio.h>
#include <string.h>

#include "tests/support/golden/golden.h"
#include "tests/support/run_suite.h"
#include "tracer/call_events/events.h"
#include "tracer/trace/together/together.h"

enum { HOSTS = 3 };
static const uint64_t date_ns = 1700000000u * UINT64_C(1000000000), later_ns = 5000000000u;

static struct merger merger;
static struct trace traces[HOSTS];
static struct trace_process processes[HOSTS];

// The golden trace as host `i` recorded it: its clock of the machine says the same as the others', its date does not.
static struct trace *host(unsigned i)
{
    struct trace *trace = &traces[i];
    golden_trace(trace);
    trace->realtime_ns = date_ns + i * later_ns;
    memset(trace->identity, (int)i + 1, sizeof trace->identity);
    processes[i] = (struct trace_process){.pid = GOLDEN_PID,
                                          .command = "/usr/bin/golden --with arguments",
                                          .start_ns = trace->start_ns,
                                          .end_ns = trace->end_ns,
                                          .thread_count = trace->thread_count};
    trace->processes = &processes[i];
    trace->process_count = 1;
    trace->note_count = trace->first_own_note = 0;
    return trace;
}

static void set_up(void)
{
    ck_assert(trace_merge_begin(&merger));
}

static void tear_down(void)
{
    trace_merge_free(&merger);
    trace_memory_free(merger.memory);
    for (unsigned i = 0; i < HOSTS; i++)
        golden_free(&traces[i]);
    memset(traces, 0, sizeof traces);
}

static int add(struct trace *trace, const char *path, const char *name)
{
    struct base_error error = {0};
    const struct trace_recording told = {.path = path, .host = name};
    return together_add(&merger, trace, &told, &error);
}

static void end(struct trace *trace)
{
    struct base_error error = {0};
    ck_assert_int_eq(together_end(&merger, trace, &error), 0);
}

START_TEST(test_one_clock)
{
    struct trace alone, whole;
    golden_trace(&alone);
    ck_assert_int_eq(add(host(1), "b.qtrace", NULL), 0); // the later one first
    ck_assert_int_eq(add(host(0), "a.qtrace", NULL), 0);
    end(&whole);
    ck_assert_uint_eq(whole.start_ns, date_ns);
    ck_assert_uint_eq(whole.realtime_ns, date_ns);
    ck_assert_uint_eq(whole.end_ns - whole.start_ns, alone.end_ns - alone.start_ns + later_ns);
    ck_assert_uint_eq(whole.recordings[0].start_ns, date_ns + later_ns);
    ck_assert_uint_eq(whole.process_count, 2);
    for (size_t p = 0; p < 2; p++) { // in the order in which they began
        const struct trace_process *process = &whole.processes[p];
        const uint64_t by_ns = date_ns + p * later_ns - alone.start_ns;
        ck_assert_uint_eq(process->recording, 1 - p);
        ck_assert_uint_eq(process->start_ns, alone.start_ns + by_ns);
        ck_assert_uint_eq(process->thread_count, alone.thread_count);
        for (size_t t = 0; t < alone.thread_count; t++) {
            const struct trace_thread *from = &alone.threads[t], *to = &whole.threads[process->first_thread + t];
            ck_assert_uint_eq(to->end_ns, from->end_ns == UINT64_MAX ? UINT64_MAX : from->end_ns + by_ns);
            for (size_t i = 0; i < from->sample_count; i++) {
                ck_assert_uint_eq(whole.samples[to->first_sample + i].first_ns,
                                  alone.samples[from->first_sample + i].first_ns + by_ns);
                ck_assert_uint_eq(whole.samples[to->first_sample + i].last_ns,
                                  alone.samples[from->first_sample + i].last_ns + by_ns);
                ck_assert_uint_eq(whole.samples[to->first_sample + i].cpu_ns,
                                  alone.samples[from->first_sample + i].cpu_ns);
            }
            for (size_t i = 0; i < from->mark_count; i++)
                ck_assert_uint_eq(whole.marks[to->first_mark + i].time_ns,
                                  alone.marks[from->first_mark + i].time_ns + by_ns);
            for (size_t i = 0; i < from->gap_count; i++)
                ck_assert_uint_eq(whole.gaps[to->first_gap + i].to_ns, alone.gaps[from->first_gap + i].to_ns + by_ns);
        }
    }
    golden_free(&alone);
}
END_TEST

START_TEST(test_no_date)
{
    struct trace whole;
    ck_assert_int_eq(add(host(1), "b.qtrace", NULL), 0);
    struct trace *undated = host(0);
    undated->realtime_ns = 0;
    ck_assert_int_eq(add(undated, "a.qtrace", NULL), 0);
    end(&whole);
    ck_assert_uint_eq(whole.start_ns, date_ns + later_ns);
    ck_assert_uint_eq(whole.recordings[1].start_ns, date_ns + later_ns);
}
END_TEST

// Of a file with a build-id the place does not matter; of one without it is all that is known.
START_TEST(test_modules)
{
    struct trace whole, *elsewhere = host(1);
    size_t known = 0, unknown = 0;
    for (size_t i = 0; i < elsewhere->module_count; i++) {
        struct trace_module *module = &elsewhere->modules[i];
        if (module->flags & QUT_TRACE_MODULE_JIT)
            continue;
        module->build_id_bytes = i % 2 ? 20 : 0;
        memset(module->build_id, (int)i, 20);
        *(module->build_id_bytes ? &known : &unknown) += 1;
    }
    struct trace *first = host(0);
    for (size_t i = 0; i < first->module_count; i++) {
        const struct trace_module *from = &elsewhere->modules[i];
        first->modules[i].build_id_bytes = from->build_id_bytes;
        memcpy(first->modules[i].build_id, from->build_id, sizeof from->build_id);
    }
    const size_t all = first->module_count;
    for (size_t i = 0; i < all; i++) {
        elsewhere->modules[i].path = "/another/place";
        elsewhere->modules[i].start += 0x100000;
    }
    ck_assert_int_eq(add(first, "a.qtrace", NULL), 0);
    ck_assert_int_eq(add(elsewhere, "b.qtrace", NULL), 0);
    end(&whole);
    ck_assert_uint_gt(known, 0);
    ck_assert_uint_eq(whole.module_count, 2 * all - known);
    for (size_t i = 0; i < all; i++)
        ck_assert(strcmp(whole.modules[i].path, "/another/place") != 0);
}
END_TEST

START_TEST(test_names)
{
    struct trace whole;
    struct base_error error = {0};
    const struct trace_recording told = {.path = "x.qtrace", .host = "h 1", .service = "a/b", .version = "7"};
    ck_assert_int_eq(together_add(&merger, host(0), &told, &error), 0);
    ck_assert_int_eq(add(host(1), "/somewhere/run2.qtrace", NULL), 0);
    struct trace *nameless = host(2);
    processes[2].command = "";
    ck_assert_int_eq(add(nameless, "c.qtrace", "h3"), 0);
    end(&whole);
    ck_assert_str_eq(whole.processes[0].command, "/usr/bin/golden@h_1,a:b,7 --with arguments");
    ck_assert_str_eq(whole.processes[1].command, "/usr/bin/golden@run2 --with arguments");
    ck_assert_str_eq(whole.processes[2].command, "process-4242@h3");
    ck_assert_str_eq(whole.command, "3 recordings");
    ck_assert_str_eq(whole.recordings[0].service, "a/b");
    ck_assert_uint_eq(whole.recording_count, HOSTS);
}
END_TEST

START_TEST(test_twice)
{
    ck_assert_int_eq(add(host(0), "a.qtrace", NULL), 0);
    ck_assert_int_eq(add(host(1), "b.qtrace", NULL), 0);
    struct trace *copy = host(2);
    memset(copy->identity, 1, sizeof copy->identity);
    ck_assert_int_eq(add(copy, "copy.qtrace", NULL), -1);
    struct trace whole;
    end(&whole);
    ck_assert_uint_eq(whole.recording_count, 2);
    ck_assert_uint_eq(whole.present_samples, 2 * copy->present_samples);
}
END_TEST

enum { CALLS_NODE = 2, CALLS_TICKS = 1000 };

// A call of the last thread, of the function at a node, 1000 ticks after the recording began; a tick is 2 ns.
static struct trace *with_calls(struct trace *trace, struct call_events **place)
{
    struct call_events *calls = *place = call_events_new();
    ck_assert_ptr_nonnull(calls);
    calls->told =
        (struct qut_trace_file_calls){.pid = GOLDEN_PID, .begin_ns = trace->start_ns, .end_ns = trace->end_ns};
    *BASE_ADD(&calls->functions) = (struct call_events_function){.name = "", .node = CALLS_NODE};
    *BASE_ADD(&calls->threads) =
        (struct call_events_thread){.thread = (uint32_t)trace->thread_count - 1, .end_ns = UINT64_MAX};
    *BASE_ADD(&calls->threads) = (struct call_events_thread){.thread = CALL_EVENTS_NONE, .start_ns = trace->start_ns};
    for (unsigned i = 0; i < 2; i++)
        *BASE_ADD(&calls->clocks) = (struct qut_trace_file_call_clock){
            .ticks = CALLS_TICKS * (i + 1), .ns = trace->start_ns + 2 * (uint64_t)CALLS_TICKS * (i + 1)};
    trace->calls = place;
    trace->calls_count = 1;
    return trace;
}

// They are on the whole's clock, and of the whole's threads and nodes, also where processes change their order.
START_TEST(test_calls)
{
    struct trace alone, whole;
    struct call_events *parts[2];
    golden_trace(&alone);
    ck_assert_int_eq(add(with_calls(host(1), &parts[0]), "b.qtrace", NULL), 0);
    ck_assert_int_eq(add(host(2), "c.qtrace", NULL), 0);
    ck_assert_int_eq(add(with_calls(host(0), &parts[1]), "a.qtrace", NULL), 0);
    ck_assert_uint_eq(traces[1].calls_count, 0); // which are no longer its own
    end(&whole);
    ck_assert_uint_eq(whole.calls_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct call_events *calls = whole.calls[i];
        const uint64_t start_ns = date_ns + (i == 0 ? later_ns : 0);
        const struct call_events_thread *threads = calls->threads.items;
        ck_assert_ptr_eq(calls, parts[i]);
        ck_assert_uint_eq(calls->recording, i == 0 ? 0 : 2);
        ck_assert_uint_eq(calls->told.begin_ns, start_ns);
        ck_assert_uint_eq(calls->told.end_ns - calls->told.begin_ns, alone.end_ns - alone.start_ns);
        ck_assert_uint_eq(call_events_ns(calls, CALLS_TICKS), start_ns + 2 * CALLS_TICKS);
        ck_assert_uint_lt(threads[0].thread, whole.thread_count);
        const struct trace_thread *thread = &whole.threads[threads[0].thread];
        ck_assert_uint_eq(whole.processes[thread->process].recording, calls->recording);
        ck_assert_uint_eq(thread->tid, alone.threads[alone.thread_count - 1].tid);
        ck_assert_uint_eq(threads[0].end_ns, UINT64_MAX);
        ck_assert_uint_eq(threads[1].thread, CALL_EVENTS_NONE);
        ck_assert_uint_eq(threads[1].start_ns, start_ns);
        ck_assert_uint_eq(whole.nodes[calls->functions.items[0].node].pc, alone.nodes[CALLS_NODE].pc);
        call_events_free(whole.calls[i]);
    }
    golden_free(&alone);
}
END_TEST

// A merger that comes to no end frees what it has taken.
START_TEST(test_calls_of_no_whole)
{
    struct call_events *part;
    ck_assert_int_eq(add(with_calls(host(0), &part), "a.qtrace", NULL), 0);
    struct trace first = traces[0];
    ck_assert_int_eq(add(host(0), "a.qtrace", NULL), -1);
    golden_free(&first);
}
END_TEST

// Where no clock is told a tick is a nanosecond, from the recording's machine on.
START_TEST(test_calls_without_clocks)
{
    struct trace whole;
    struct call_events *part;
    struct trace *trace = with_calls(host(1), &part);
    const uint64_t start_ns = trace->start_ns;
    part->clocks.count = 0;
    ck_assert_int_eq(add(trace, "b.qtrace", NULL), 0);
    end(&whole);
    ck_assert_uint_eq(call_events_ns(part, start_ns + 5), date_ns + later_ns + 5);
    call_events_free(part);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("together");
    TCase *tests = tcase_create("together");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, test_one_clock);
    tcase_add_test(tests, test_no_date);
    tcase_add_test(tests, test_modules);
    tcase_add_test(tests, test_names);
    tcase_add_test(tests, test_twice);
    tcase_add_test(tests, test_calls);
    tcase_add_test(tests, test_calls_of_no_whole);
    tcase_add_test(tests, test_calls_without_clocks);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
