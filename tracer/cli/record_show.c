// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_show.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "cli/terminal.h"
#include "tracer/trace/trace_data.h"

static const double ns_per_s = 1e9;

// ---- the status line

void cli_record_show_begin(struct record_show *show, bool quiet)
{
    *show = (struct record_show){.is_shown = !quiet && isatty(STDERR_FILENO)};
}

static void draw(struct record_show *show, const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)cli_terminal_columns(stderr), text);
    fputc('\r', stderr);
    cli_print_name(stderr, line); // a file's name may be in it
    fputs("\033[K", stderr);
    fflush(stderr);
    show->is_drawn = true;
}

static void note_rate(struct record_show *show, const struct record_status *status)
{
    uint64_t taken = status->counts.stored + status->counts.merged;
    uint64_t ns = status->elapsed_ns - show->ns_before;
    if (ns < 500000000 || status->elapsed_ns < show->ns_before)
        return;
    show->per_second =
        taken > show->hits_before ? (uint64_t)((double)(taken - show->hits_before) * ns_per_s / (double)ns) : 0;
    show->hits_before = taken;
    show->ns_before = status->elapsed_ns;
}

void cli_record_show_status(void *context, const struct record_status *status)
{
    struct record_show *show = context;
    char text[256], lost[48] = "";
    if (!show->is_shown)
        return;
    note_rate(show, status);
    uint64_t losses = record_counts_lost(&status->counts);
    if (losses)
        snprintf(lost, sizeof lost, ", %" PRIu64 " lost", losses);
    if (status->all)
        snprintf(text, sizeof text, "%s: putting processes together: %zu of %zu", cli_program, status->done,
                 status->all);
    else if (status->tables_left && !status->processes)
        snprintf(text, sizeof text,
                 "%s: %.0f s, nothing is recorded yet: making tables, %" PRIu64 " of %" PRIu64 " are there  %s",
                 cli_program, (double)status->elapsed_ns / ns_per_s, status->tables_done,
                 status->tables_done + status->tables_left, status->table);
    else if (status->is_stopped)
        snprintf(text, sizeof text, "%s: recording has ended; waiting for the command", cli_program);
    else
        snprintf(text, sizeof text,
                 "%s: %.0f s, %" PRIu64 " samples, %" PRIu64 "/s%s, %" PRIu64 " processes, %" PRIu64 " threads, %s%s",
                 cli_program, (double)status->elapsed_ns / ns_per_s, status->counts.stored + status->counts.merged,
                 show->per_second, lost, status->processes_now, status->threads_now,
                 base_quantity_bytes(status->file_bytes).text, status->has_ended ? "; the command has ended" : "");
    draw(show, text);
}

void cli_record_show_clear(struct record_show *show)
{
    if (show->is_drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    show->is_drawn = false;
}

// ---- the end

// "; lost: 12 no room, 3 nested too deep"
static void say_losses(FILE *stream, const char *path, const struct record_counts *counts)
{
    uint64_t lost = record_counts_lost(counts), all = counts->hits;
    if (!lost)
        return;
    fprintf(stream, "%s: ", cli_program);
    cli_print_name(stream, path);
    fprintf(stream, ": lost %" PRIu64 " of %" PRIu64 " samples (%.2f %%):", lost, all,
            all ? 100 * (double)lost / (double)all : 0);
    const char *before = " ";
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        if (counts->lost[i]) {
            fprintf(stream, "%s%" PRIu64 " %s", before, counts->lost[i], trace_lost_name(i));
            before = ", ";
        }
    fputs("\n", stream);
}

// Where there was no room for the whole stack: a larger buffer has it.
static void say_cuts(const char *path, const struct record_counts *counts)
{
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        if (counts->cut[i] && i != QUT_TRACE_CUT_WALK)
            cli_report(stderr, path, "%" PRIu64 " samples are cut: %s%s", counts->cut[i], trace_cut_name(i),
                       i == QUT_TRACE_CUT_DEPTH ? "" : " (--buffer)");
    if (counts->lost[QUT_TRACE_LOST_POOL] || counts->lost[QUT_TRACE_LOST_THREADS])
        cli_report(stderr, path, "a larger --buffer has room for more samples and threads");
}

static void say_ticks(const char *path, const struct record_result *result)
{
    const struct agent_channel_counts *ticks = &result->ticks;
    if (ticks->lost || ticks->kernel || ticks->late)
        cli_report(stderr, path,
                   "%" PRIu64 " ticks were due: %" PRIu64 " taken, %" PRIu64 " late, %" PRIu64
                   " in the kernel (sampled by its own tick), %" PRIu64 " lost",
                   ticks->due, ticks->taken, ticks->late, ticks->kernel, ticks->lost);
    if (result->processes_unticked)
        cli_report(stderr, path, "%" PRIu64 " processes could have no ticks: %s", result->processes_unticked,
                   result->unticked);
}

bool cli_record_show_left(const char *path, const struct record_result *result)
{
    const struct left_counts *left = &result->left;
    uint64_t all = record_left_sum(left);
    const char *before = ": ";
    if (!all)
        return false;
    fprintf(stderr, "%s: ", cli_program);
    cli_print_name(stderr, path);
    fprintf(stderr, ": %" PRIu64 " processes were not followed", all);
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++)
        if (left->of[why]) {
            fprintf(stderr, "%s%" PRIu64 " %s", before, left->of[why], record_left_reason(why));
            before = ", ";
        }
    char call[96];
    if (left->of[AGENT_LEFT_FAILED] && result->left_error) {
        record_left_call(result->left_call, result->left_error, call, sizeof call);
        fprintf(stderr, " (%s)", call);
    }
    fputs("\n", stderr);
    return true;
}

static void say_processes(const char *path, const struct record_result *result)
{
    cli_record_show_left(path, result);
    if (result->processes_left)
        cli_report(stderr, path, "%" PRIu64 " processes had not ended, and go on", result->processes_left);
    if (result->processes_failed)
        cli_report(stderr, path, "%" PRIu64 " processes are not, or not all, in it", result->processes_failed);
    if (result->is_short_of_descriptors)
        cli_report(stderr, path, "there were too few descriptors for all processes: ulimit -n allows more");
    if (result->agents_strange)
        cli_report(stderr, path,
                   "%" PRIu64 " processes have the agent of another version of QUT, and are not in it: install qut and "
                   "libqut-agent.so together",
                   result->agents_strange);
    if (result->packets_refused)
        cli_report(stderr, path, "%" PRIu64 " packets that made no sense were refused", result->packets_refused);
}

static void say_cost(const struct record_result *result, const struct record_own *own)
{
    char of[64] = "", inside[128] = "";
    double beside_s = (double)result->own_cpu_ns / ns_per_s, inside_s = own ? (double)own->ns / ns_per_s : 0;
    if (result->command_cpu_ns)
        snprintf(of, sizeof of, ", of %.2f s of the command", (double)result->command_cpu_ns / ns_per_s);
    if (own)
        snprintf(inside, sizeof inside, "%.3f s inside the program (%.1f %% +- %.1f%s), ", inside_s, 100 * own->share,
                 100 * own->error, of);
    cli_report(stderr, NULL, "%.2f s; %s itself used %.3f s of processor time: %s%.3f s beside it%s",
               (double)result->elapsed_ns / ns_per_s, cli_program, beside_s + inside_s, inside, beside_s,
               own ? "" : "; what it used inside is not known");
    if (result->inject_stopped_ns)
        cli_report(stderr, NULL, "one thread stood still for %s, so that the agent could be loaded",
                   base_quantity_time(result->inject_stopped_ns).text);
}

const char *cli_record_show_roots(char text[RECORD_ROOTS_BYTES], uint64_t roots, uint64_t samples)
{
    text[0] = 0;
    if (samples)
        snprintf(text, RECORD_ROOTS_BYTES, ", %.2f %% of them to the root", 100 * (double)roots / (double)samples);
    return text;
}

// What was asked for may be more than was to be had; what is said is what was.
static void say_rate(const struct record_command_options *options, const struct record_result *result)
{
    const double enough = 0.97;
    const struct agent_channel_counts *ticks = &result->ticks;
    const struct record_rate rate = record_rate(options->settings.period_ns, ticks);
    if (rate.reached_hz >= enough * rate.asked_hz)
        return;
    cli_report(stderr, options->path,
               "%.0f samples for each second of processor time, not the %.0f that were asked for%s%s", rate.reached_hz,
               rate.asked_hz,
               ticks->asked > ticks->due ? "; this system holds no more (kernel.perf_event_max_sample_rate)" : "",
               ticks->late > ticks->due / 32
                   ? "; threads that wait often are sampled in the kernel's own tick: each such sample stands for more"
                   : "");
}

void cli_record_show_summary(const struct record_command_options *options, const struct record_result *result,
                             const struct record_own *own)
{
    const char *path = options->path;
    const struct record_counts *counts = &result->counts;
    uint64_t taken = counts->stored + counts->merged;
    // First what is missing.
    say_losses(stderr, path, counts);
    say_cuts(path, counts);
    say_ticks(path, result);
    say_rate(options, result);
    say_processes(path, result);
    uint64_t cut = counts->cut[QUT_TRACE_CUT_WALK];
    char roots[RECORD_ROOTS_BYTES];
    cli_report(stderr, path, "%" PRIu64 " samples of %" PRIu64 " threads in %" PRIu64 " processes%s; %s", taken,
               counts->threads_seen, result->processes,
               cli_record_show_roots(roots, taken - (cut < taken ? cut : taken), taken),
               base_quantity_bytes(result->file_bytes).text);
    say_cost(result, own);
    if (result->kept_as[0])
        cli_report(stderr, path, "the file that was there is now %s", result->kept_as);
}
