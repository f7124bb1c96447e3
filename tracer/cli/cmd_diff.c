// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/terminal.h"
#include "tracer/cli/selection_options.h"
#include "tracer/cli/trace_output.h"
#include "tracer/diff/diff.h"
#include "tracer/export/losses.h"

enum { ROWS_DEFAULT = 20 };

static const char help[] =
    "Usage: qut diff A B\n"
    "       qut diff A... -- B...\n"
    "       qut diff --base A [--base A]... B...\n\n"
    "Compares recordings by function: which have another share of processor time (or of what --kind and --weight\n"
    "say), by themselves and with what they call, by how much, and whether chance alone may have made it. A is what\n"
    "was before. Functions are the same by name, without .cold, .isra and the like; programs may be other builds.\n\n"
    "With one recording a side, what is told is beyond the chance of sampling. With several, it is beyond what\n"
    "recordings of one side differ by, too: take three or more. \"Cannot tell\" is an answer: more samples may say\n"
    "more. Chances are corrected for the number of functions: of 20 that are told, one may be wrong.\n\n"
    "Exact calls (qut trace) on both sides are compared by count, total, self and mean time.\n\n"
    "The exit status is 0 where all was compared; 1 where a recording is incomplete, which is said, or where --check\n"
    "found a function that became more; 2 where a FILE is no trace, or nothing can be compared.\n\n"
    "Example: qut diff before1.qtrace before2.qtrace -- after1.qtrace after2.qtrace\n";

struct job {
    const struct trace_options *options;
    struct diff_wanted wanted;
    struct diff diff;
    bool is_incomplete;
};

static void say_loss(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

// 0; -1 with *error filled; or an exit status, where it has said why.
static int add_trace(struct job *job, enum diff_side side, const char *path, const struct trace *trace,
                     struct base_error *error)
{
    const struct trace_options *options = job->options;
    const struct names_options names_wanted = {.debug_root = options->debug_root,
                                               .system_root = options->system_root,
                                               .inlined = !options->no_inlines,
                                               .debuginfod = options->debuginfod};
    struct selection selection;
    if (diff_select(&selection, trace, &job->diff, &job->wanted, error) != 0)
        return -1;
    if (!cli_selection_fits(options, path, &selection)) {
        analysis_selection_free(&selection);
        return CLI_BAD;
    }
    struct names *names = names_of(trace, &names_wanted, error);
    int status = names ? diff_add(&job->diff, side, &selection, names, &job->wanted, error) : -1;
    names_free(names);
    analysis_selection_free(&selection);
    return status;
}

// An exit status.
static int add_file(struct job *job, enum diff_side side, const char *path)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read(path, &trace, &error) != 0) {
        cli_report_error(stderr, path, &error);
        return CLI_BAD;
    }
    struct trace_balance balance = trace_balance(&trace);
    job->is_incomplete |= !trace.is_complete || balance.hits_missing || balance.samples_missing;
    if (!job->options->quiet)
        export_losses_say(&trace, say_loss, (void *)(uintptr_t)path);
    int status = add_trace(job, side, path, &trace, &error);
    if (status < 0)
        cli_report_error(stderr, path, &error);
    trace_free(&trace);
    return status < 0 ? CLI_BAD : status;
}

static int write_page(const struct job *job, const char *out)
{
    struct base_error error = {0};
    struct sink *sink = sink_file(out, &error);
    int status = sink ? diff_write_page(&job->diff, sink, &error) : -1;
    struct base_error closing = {0};
    if (sink && sink_close(sink, status == 0, &closing) != 0 && status == 0) {
        error = closing;
        status = -1;
    }
    if (status != 0)
        cli_report_error(stderr, out, &error);
    return status == 0 ? CLI_OK : CLI_BAD;
}

static int print(struct job *job)
{
    const struct trace_options *options = job->options;
    const struct diff *diff = &job->diff;
    if (!diff_has_samples(diff) && !diff_has_calls(diff)) {
        cli_report(stderr, NULL, "nothing to compare: both sides need samples of kind %s, or exact calls",
                   analysis_kind_name(diff->kind));
        return CLI_BAD;
    }
    if (options->page && write_page(job, options->page) != CLI_OK)
        return CLI_BAD;
    if (options->json)
        diff_print_json(diff, (size_t)options->limit, false, stdout);
    else
        diff_print_text(diff, options->limit ? (size_t)options->limit : ROWS_DEFAULT, cli_terminal_columns(stdout),
                        stdout);
    return job->is_incomplete || (options->check && diff_count(diff, JUDGE_MORE)) ? CLI_NO : CLI_OK;
}

static int run(struct job *job, char *const files[2][TRACE_BASES_MAX], const size_t counts[2])
{
    struct base_error error = {0};
    const char *page = job->options->page;
    for (enum diff_side side = DIFF_A; page && side <= DIFF_B; side++)
        for (size_t i = 0; i < counts[side]; i++)
            if (cli_is_same_file(files[side][i], page)) {
                cli_report(stderr, page, "is one of the recordings");
                return CLI_BAD;
            }
    if (diff_begin(&job->diff, counts, &error) != 0) {
        cli_report_error(stderr, "diff", &error);
        return CLI_BAD;
    }
    for (enum diff_side side = DIFF_A; side <= DIFF_B; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            int status = add_file(job, side, files[side][i]);
            if (status != CLI_OK)
                return status;
        }
    if (diff_finish(&job->diff, &error) != 0) {
        cli_report_error(stderr, "diff", &error);
        return CLI_BAD;
    }
    return print(job);
}

// Where "--" stands; argc: nowhere.
static int divider(int argc, char **argv)
{
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0)
        at++;
    return at;
}

static bool take_files(char *files[TRACE_BASES_MAX], size_t *count, char *const *from, int from_count)
{
    for (int i = 0; i < from_count; i++) {
        if (*count == TRACE_BASES_MAX)
            return false;
        files[(*count)++] = from[i];
    }
    return true;
}

static int diff_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct trace_options options = {.command = "diff"};
    const int middle = divider(argc, argv);
    // What getopt puts in order ends at the divider, so both sides stay what they are.
    char *after = middle < argc ? argv[middle] : NULL;
    if (after)
        argv[middle] = NULL;
    int status = cli_trace_options_parse(&options, TRACE_DIFF, help, middle, argv);
    if (after)
        argv[middle] = after;
    if (status != CLI_GO_ON)
        return status;
    char *files[2][TRACE_BASES_MAX];
    size_t counts[2] = {0, 0};
    bool fits = take_files(files[DIFF_A], &counts[DIFF_A], (char *const *)(uintptr_t)options.bases, options.base_count);
    const bool is_pair = !after && !options.base_count;
    if (is_pair && options.file_count != 2)
        return cli_trace_options_refuse(&options, "diff",
                                        "needs two FILEs, or \"--\" between those of A and of B, or --base");
    fits =
        fits && take_files(files[options.base_count ? DIFF_B : DIFF_A], &counts[options.base_count ? DIFF_B : DIFF_A],
                           options.files, is_pair ? 1 : options.file_count);
    fits = fits && take_files(files[DIFF_B], &counts[DIFF_B], is_pair ? options.files + 1 : argv + middle + 1,
                              is_pair ? 1
                              : after ? argc - middle - 1
                                      : 0);
    if (!fits || !counts[DIFF_A] || !counts[DIFF_B])
        return cli_trace_options_refuse(&options, "diff", "needs 1 to 64 recordings on each side");
    struct job job = {.options = &options,
                      .wanted = {.part = options.wanted,
                                 .weight = options.weight,
                                 .by_amount = options.by_amount,
                                 .show_agent = options.wanted.show_agent}};
    status = run(&job, files, counts);
    diff_free(&job.diff);
    return status;
}

const struct cli_command command_diff = {"diff", "compare recordings by function, and say what chance may have made",
                                         diff_command, NULL};
