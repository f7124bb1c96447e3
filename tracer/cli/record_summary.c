// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_summary.h"

#include <inttypes.h>
#include <string.h>

#include <qut/sample.h>

#include "base/quantity.h"
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

// A file without samples has nothing to report: what to record instead.
static void say_why_none(const struct record_command_options *options, const struct record_result *result)
{
    enum { WANTED_SAMPLES = 20, HZ_LEAST = 5000, HZ_MOST = 50000 };
    const uint64_t ns_per_s = 1000000000, used_ns = result->command_cpu_ns, period_ns = options->settings.period_ns;
    uint64_t hz = used_ns ? WANTED_SAMPLES * ns_per_s / used_ns / 1000 * 1000 : HZ_MOST;
    hz = hz < HZ_LEAST ? HZ_LEAST : hz > HZ_MOST ? HZ_MOST : hz;
    if (options->settings.trigger == QUT_TRIGGER_NONE)
        cli_report(stderr, NULL, "no samples: there are no ticks, and no call was met that --sync names");
    else if (options->pid)
        cli_report(stderr, NULL,
                   "no samples: the process waited, or used less processor time than one tick of %s. "
                   "To see what it waits for: -p PID --wall",
                   base_quantity_time(period_ns).text);
    else
        cli_report(stderr, NULL,
                   "no samples: the command used %s of processor time, most of it to start; a tick comes once in %s. "
                   "To see more: -F %" PRIu64 " (more ticks), --wall (waits too) or --sync all (calls)",
                   base_quantity_time(used_ns).text, base_quantity_time(period_ns).text, hz);
}

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

static void print_rate(struct base_json *json, const struct record_command_options *options,
                       const struct record_result *result)
{
    const struct record_rate rate = record_rate(options->settings.period_ns, &result->ticks);
    if (rate.asked_hz <= 0)
        return;
    base_json_open(json, "rate", '{');
    base_json_real(json, "asked_hz", rate.asked_hz, 1);
    base_json_real(json, "reached_hz", rate.reached_hz, 1);
    base_json_close(json, '}');
}

static void print_processes(struct base_json *json, const struct record_result *result)
{
    base_json_number(json, "processes", result->processes);
    base_json_number(json, "processes_without_samples", result->processes_without_samples);
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
    struct record_own own;
    if (cli_record_top_own(top, &own)) {
        base_json_number(&json, "own_inside_ns", own.ns);
        base_json_real(&json, "own_inside_share", own.share, 6);
        base_json_real(&json, "own_inside_error", own.error, 6);
    }
    number_of(&json, "stopped_ns", result->inject_stopped_ns);
    print_counts(&json, &result->counts);
    print_ticks(&json, &result->ticks);
    print_rate(&json, options, result);
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
    struct record_own own;
    if (result->is_kept && (is_told || options->json))
        cli_record_top_read(&top, options->path, result->file_bytes);
    if (is_told) {
        cli_record_show_summary(options, result, cli_record_top_own(&top, &own) ? &own : NULL);
        if (result->counts.stored + result->counts.merged) {
            cli_record_top_text(&top, stderr);
            say_next(options->path);
        } else if (!result->processes_failed) {
            say_why_none(options, result);
        }
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
        {result->missed_asleep, "asleep", "of threads that slept or had no processor when they were looked at"},
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
    uint64_t stored = result->taken - result->lost;
    say_missed(path, result);
    char roots[RECORD_ROOTS_BYTES];
    cli_report(stderr, path, "%" PRIu64 " samples of %" PRIu64 " threads%s; %s", stored, result->threads,
               cli_record_show_roots(roots, result->roots, stored),
               base_quantity_bytes(result->collected.file_bytes).text);
    if (result->python_uncertain)
        cli_report(stderr, path,
                   "%" PRIu64 " of %" PRIu64
                   " stacks with Python lack functions of it, or have them where they need not belong",
                   result->python_uncertain,
                   result->python > result->python_uncertain ? result->python : result->python_uncertain);
    if (result->stops)
        cli_report(stderr, NULL, "stopped %" PRIu64 " times: median %s, 99 %% below %s, longest %s, %s in all",
                   result->stops, base_quantity_time(result->stop_median_ns).text,
                   base_quantity_time(result->stop_p99_ns).text, base_quantity_time(result->stop_longest_ns).text,
                   base_quantity_time(result->stopped_ns).text);
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
    base_json_number(&json, "stopped_ns", result->stopped_ns);
    base_json_number(&json, "python_stacks", result->python);
    base_json_number(&json, "python_uncertain", result->python_uncertain);
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
        if (result->taken > result->lost)
            say_next(options->path);
    }
    if (options->json)
        print_outside(options, result, &top);
    cli_record_top_free(&top);
}
