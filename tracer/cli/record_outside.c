// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_go.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/sample.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "cli/progress.h"
#include "tracer/attach/attach.h"
#include "tracer/cli/record_children.h"
#include "tracer/cli/record_show.h"
#include "tracer/cli/record_summary.h"
#include "tracer/record/launch.h"
#include "tracer/record/output.h"

struct outside {
    const struct record_command_options *options;
    struct record_show show;
    struct progress progress;
    struct output output;
    sigset_t mask_before;
    int stop_fd;
    uint64_t start_ns;
    struct attach_result result;
    struct record_children children; // when it began
};

static void preparing(void *context, unsigned done, unsigned all)
{
    struct outside *outside = context;
    cli_progress_step(&outside->progress, done, all);
}

static void show_progress(void *context, const struct attach_result *now)
{
    struct outside *outside = context;
    cli_progress_end(&outside->progress);
    const struct record_status status = {.elapsed_ns = now->elapsed_ns,
                                         .counts = {.stored = now->taken},
                                         .processes_now = 1,
                                         .threads_now = now->threads_now,
                                         .file_bytes = now->collected.file_bytes};
    cli_record_show_status(&outside->show, &status);
}

static int open_stop(struct outside *outside)
{
    record_launch_ignore_signals();
    outside->stop_fd = record_launch_take_signals(false, &outside->mask_before);
    return outside->stop_fd;
}

static int say_failures(const char *path, const struct attach_result *result)
{
    char text[256];
    const struct collect_result *collected = &result->collected;
    const struct base_error *error = result->collect_error.reason ? &result->collect_error : &collected->first_failure;
    if (result->end == ATTACH_END_TAKEN)
        cli_report(stderr, path, "ends early: the process may not be traced any more, or another tracer has it now");
    if (!error->reason && !collected->failed_writes)
        return result->end == ATTACH_END_TAKEN ? CLI_NO : CLI_OK;
    cli_report(stderr, path, "could not be written: %s", base_error_text(error, text, sizeof text));
    return CLI_NO;
}

// *is_recorded: the file is there.
static int sample(struct outside *outside, pid_t pid, bool *is_recorded)
{
    const struct record_command_options *options = outside->options;
    const struct agent_settings *settings = &options->settings;
    uint64_t main_period_ns = 0;
    for (uint32_t i = 0; i < settings->group_count; i++)
        if (strcmp(settings->groups[i].pattern, "main") == 0)
            main_period_ns = settings->groups[i].period_ns;
    const struct attach_options attached = {.pid = pid,
                                            .tid = options->tid,
                                            .period_ns = settings->period_ns,
                                            .main_period_ns = main_period_ns,
                                            .wall = settings->trigger == QUT_TRIGGER_WALL,
                                            .duration_ns = options->duration_ns,
                                            .stop_fd = outside->stop_fd,
                                            .file_fd = outside->output.fd,
                                            .live = options->live,
                                            .segment_bytes = settings->segment_bytes,
                                            .cache_directory = *settings->cache ? settings->cache : NULL,
                                            .debug_root = "/usr/lib/debug",
                                            .take = options->elsewhere ? elsewhere_take : NULL,
                                            .take_context = options->elsewhere,
                                            .progress = show_progress,
                                            .progress_context = outside,
                                            .preparing = preparing};
    struct attach_error error = {0};
    cli_record_children_read(&outside->children, pid);
    cli_progress_begin(&outside->progress, "tables", options->quiet);
    int status = attach_record(&attached, &outside->result, &error);
    cli_progress_end(&outside->progress);
    cli_record_show_clear(&outside->show);
    *is_recorded = status == 0;
    if (status != 0) {
        cli_report(stderr, NULL, "%s", error.text);
        return CLI_BAD;
    }
    cli_record_summary_outside(options, &outside->result);
    if (!options->quiet)
        cli_record_children_say(&outside->children, pid, outside->result.taken > outside->result.lost);
    return say_failures(options->path, &outside->result);
}

static int begin(struct outside *outside, const struct record_command_options *options)
{
    struct base_error error = {0};
    *outside = (struct outside){.options = options, .stop_fd = -1};
    cli_record_show_begin(&outside->show, options->quiet);
    if (options->settings.trigger == QUT_TRIGGER_NONE) {
        cli_report(stderr, "--no-ticks", "from outside there is nothing else");
        return CLI_BAD;
    }
    if (record_output_begin(&outside->output, options->path, &error) != 0) {
        cli_report_error(stderr, options->path, &error);
        return CLI_BAD;
    }
    if (open_stop(outside) < 0) {
        cli_report(stderr, "signalfd", "%s", strerror(errno));
        return CLI_BAD;
    }
    return CLI_GO_ON;
}

static int end(struct outside *outside, int status, bool is_recorded)
{
    struct base_error error = {0};
    if (record_output_end(&outside->output, is_recorded, &error) != 0 && status == CLI_OK) {
        cli_report_error(stderr, outside->options->path, &error);
        status = CLI_NO;
    }
    cli_record_children_free(&outside->children);
    if (outside->output.kept_as[0] && !outside->options->quiet)
        cli_report(stderr, outside->options->path, "the file that was there is now %s", outside->output.kept_as);
    if (outside->stop_fd >= 0) {
        // What ended the recording has done its work: it is not to end us as well.
        struct signalfd_siginfo came;
        while (read(outside->stop_fd, &came, sizeof came) == (ssize_t)sizeof came)
            continue;
        close(outside->stop_fd);
    }
    sigprocmask(SIG_SETMASK, &outside->mask_before, NULL);
    return status;
}

int cli_record_outside_process(const struct record_command_options *options)
{
    struct outside outside;
    bool is_recorded = false;
    int status = begin(&outside, options);
    if (status != CLI_GO_ON)
        return status;
    status = sample(&outside, options->pid, &is_recorded);
    return end(&outside, status, is_recorded);
}

// The tracer may have taken its status before us: then it is not known.
static int wait_for(pid_t pid, int status_of_recording)
{
    int status;
    pid_t got;
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got != pid)
        return status_of_recording;
    int of_command = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return of_command ? of_command : status_of_recording;
}

int cli_record_outside_command(const struct record_command_options *options, const struct program *program)
{
    struct outside outside;
    struct launched launched;
    struct base_error error = {0};
    bool is_recorded = false;
    int status = begin(&outside, options);
    if (status != CLI_GO_ON)
        return status;
    const struct launch how = {.path = program->path, .arguments = options->command, .mask = &outside.mask_before};
    status = record_launch(&how, &launched, &error);
    if (status) {
        cli_report(stderr, options->command[0], "%s", error.detail);
        return end(&outside, status, false);
    }
    status = sample(&outside, launched.pid, &is_recorded);
    status = wait_for(launched.pid, status == CLI_BAD ? CLI_NO : status);
    close(launched.process_fd);
    return end(&outside, status, is_recorded);
}
