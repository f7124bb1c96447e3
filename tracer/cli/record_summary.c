// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_summary.h"

#include <inttypes.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "tracer/cli/record_show.h"
#include "tracer/cli/record_top.h"

static void say_next(const char *path)
{
    fprintf(stderr, "%s: next: %s report ", cli_program, cli_program);
    cli_print_name(stderr, path);
    fprintf(stderr, "   or   %s export -f perfetto ", cli_program);
    cli_print_name(stderr, path);
    fputs("\n", stderr);
}

// ---- a command, or an agent that was injected

static void number_of(struct base_json *json, const char *key, uint64_t value)
{
    if (value)
        base_json_number(json, key, value);
}

static void print_counts(struct base_json *json, const struct record_counts *counts)
{
    base_json_number(json, "hits", counts->hits);
    base_json_number(json, "samples", counts->stored + counts->merged);
    base_json_number(json, "throttled", counts->throttled);
    base_json_number(json, "threads", counts->threads_seen);
    base_json_open(json, "lost", '{');
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        number_of(json, trace_lost_name(i), counts->lost[i]);
    base_json_close(json, '}');
    base_json_open(json, "cut", '{');
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        number_of(json, trace_cut_name(i), counts->cut[i]);
    base_json_close(json, '}');
}

static void print_ticks(struct base_json *json, const struct agent_channel_counts *ticks)
{
    base_json_open(json, "ticks", '{');
    base_json_number(json, "due", ticks->due);
    base_json_number(json, "taken", ticks->taken);
    base_json_number(json, "late", ticks->late);
    base_json_number(json, "kernel", ticks->kernel);
    base_json_number(json, "lost", ticks->lost);
    base_json_close(json, '}');
}

static void print_processes(struct base_json *json, const struct record_result *result)
{
    base_json_number(json, "processes", result->processes);
    base_json_number(json, "processes_left_running", result->processes_left);
    base_json_number(json, "processes_not_recorded", result->processes_failed);
    base_json_number(json, "processes_not_followed", record_left_sum(&result->left));
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++)
        number_of(json, record_left_name(why), result->left.of[why]);
    base_json_number(json, "processes_without_ticks", result->processes_unticked);
    base_json_number(json, "processes_with_unknown_ticks", result->processes_untold);
}

static void print_inside(const struct record_command_options *options, const struct record_result *result,
                         const struct record_top *top)
{
    struct base_json json = {.stream = options->json};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", result->is_kept ? options->path : "");
    if (result->kept_as[0])
        base_json_string(&json, "old_file", result->kept_as);
    base_json_string(&json, "mode", options->pid ? "injected" : "command");
    if (result->command_status >= 0)
        base_json_number(&json, "command_status", (uint64_t)result->command_status);
    base_json_number(&json, "elapsed_ns", result->elapsed_ns);
    base_json_number(&json, "own_cpu_ns", result->own_cpu_ns);
    number_of(&json, "command_cpu_ns", result->command_cpu_ns);
    number_of(&json, "stopped_ns", result->inject_stopped_ns);
    print_counts(&json, &result->counts);
    print_ticks(&json, &result->ticks);
    print_processes(&json, result);
    base_json_number(&json, "file_bytes", result->file_bytes);
    base_json_number(&json, "failed_writes", result->failed_writes);
    if (result->first_failure[0])
        base_json_string(&json, "error", result->first_failure);
    cli_record_top_json(top, &json);
    base_json_close(&json, '}');
}

void cli_record_summary_inside(const struct record_command_options *options, const struct record_result *result)
{
    const bool is_told = result->is_kept && !options->quiet;
    struct record_top top = {.is_read = false};
    if (result->is_kept && (is_told || options->json))
        cli_record_top_read(&top, options->path, result->file_bytes);
    if (is_told) {
        cli_record_show_summary(options->path, result);
        cli_record_top_text(&top, stderr);
        say_next(options->path);
    }
    if (options->json)
        print_inside(options, result, &top);
    cli_record_top_free(&top);
}

// ---- from outside

struct missed {
    uint64_t count;
    const char *key, *why;
};
enum { MISSED_COUNT = 5 };

static void list_missed(const struct attach_result *result, struct missed missed[MISSED_COUNT])
{
    const struct missed all[MISSED_COUNT] = {
        {result->missed_asleep, "asleep", "of threads that had gone to sleep"},
        {result->missed_woke, "woke", "of threads that woke while they were looked at"},
        {result->missed_slow, "slow", "of threads that did not stop in time"},
        {result->missed_gone, "gone", "of threads that were gone"},
        {result->missed_registers, "registers", "of threads in another mode"}};
    memcpy(missed, all, sizeof all);
}

static void say_missed(const char *path, const struct attach_result *result)
{
    struct missed missed[MISSED_COUNT];
    list_missed(result, missed);
    for (size_t i = 0; i < MISSED_COUNT; i++)
        if (missed[i].count)
            cli_report(stderr, path, "missed %" PRIu64 " samples %s", missed[i].count, missed[i].why);
    if (result->lost)
        cli_report(stderr, path, "lost %" PRIu64 " samples: there was no room; a larger --buffer has more",
                   result->lost);
    if (result->disturbed)
        cli_report(stderr, path, "%" PRIu64 " system calls of the process were cut short by us", result->disturbed);
}

static void say_outside(const char *path, const struct attach_result *result)
{
    char bytes[32];
    uint64_t stored = result->taken - result->lost;
    say_missed(path, result);
    char roots[RECORD_ROOTS_BYTES];
    cli_report(stderr, path, "%" PRIu64 " samples of %" PRIu64 " threads%s; %s", stored, result->threads,
               cli_record_show_roots(roots, result->roots, stored),
               cli_record_show_bytes(bytes, result->collected.file_bytes));
    cli_report(stderr, NULL, "stopped %" PRIu64 " times: median %.1f us, 99 %% below %.1f us, longest %.1f us",
               result->stops, (double)result->stop_median_ns / 1000, (double)result->stop_p99_ns / 1000,
               (double)result->stop_longest_ns / 1000);
}

static void print_outside(const struct record_command_options *options, const struct attach_result *result,
                          const struct record_top *top)
{
    struct base_json json = {.stream = options->json};
    struct missed missed[MISSED_COUNT];
    list_missed(result, missed);
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", options->path);
    base_json_string(&json, "mode", "outside");
    base_json_number(&json, "elapsed_ns", result->elapsed_ns);
    base_json_number(&json, "samples", result->taken - result->lost);
    base_json_number(&json, "threads", result->threads);
    base_json_number(&json, "processes", 1);
    base_json_number(&json, "lost_samples", result->lost);
    base_json_open(&json, "missed", '{');
    for (size_t i = 0; i < MISSED_COUNT; i++)
        number_of(&json, missed[i].key, missed[i].count);
    base_json_close(&json, '}');
    base_json_number(&json, "disturbed_calls", result->disturbed);
    base_json_number(&json, "stops", result->stops);
    base_json_number(&json, "stop_median_ns", result->stop_median_ns);
    base_json_number(&json, "stop_p99_ns", result->stop_p99_ns);
    base_json_number(&json, "stop_longest_ns", result->stop_longest_ns);
    base_json_number(&json, "file_bytes", result->collected.file_bytes);
    base_json_number(&json, "failed_writes", result->collected.failed_writes);
    cli_record_top_json(top, &json);
    base_json_close(&json, '}');
}

void cli_record_summary_outside(const struct record_command_options *options, const struct attach_result *result)
{
    struct record_top top = {.is_read = false};
    if (!options->quiet || options->json)
        cli_record_top_read(&top, options->path, result->collected.file_bytes);
    if (!options->quiet) {
        say_outside(options->path, result);
        cli_record_top_text(&top, stderr);
        say_next(options->path);
    }
    if (options->json)
        print_outside(options, result, &top);
    cli_record_top_free(&top);
}
