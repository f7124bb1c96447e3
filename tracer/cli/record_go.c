// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_go.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <qut/sample.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "qutc/cache.h"
#include "tracer/attach/attach.h"
#include "tracer/cli/calls_options.h"
#include "tracer/cli/record_show.h"
#include "tracer/cli/record_summary.h"
#include "tracer/record/record.h"

struct work {
    const struct record_command_options *options;
    struct record_show show;
    char agent_path[PATH_MAX];
    struct program program;
    pid_t pid; // with --inject
};

static void say(void *context, const char *subject, const char *text)
{
    struct work *work = context;
    cli_record_show_clear(&work->show);
    cli_report(stderr, subject, "%s", text);
}

static void show_status(void *context, const struct record_status *status)
{
    struct work *work = context;
    cli_record_show_status(&work->show, status);
}

// ---- before

static int take_cache(struct record_command_options *options)
{
    struct agent_settings *settings = &options->settings;
    char *directory = NULL;
    struct base_error error = {0};
    if (options->no_cache)
        return CLI_GO_ON;
    if (!options->cache_directory && qutc_cache_directory(&directory, &error) != 0) {
        cli_report(stderr, "cache", "%s; tables are made anew", error.detail);
        return CLI_GO_ON;
    }
    const char *path = options->cache_directory ? options->cache_directory : directory;
    char whole[PATH_MAX] = "";
    // The command may go to another directory.
    if (qutc_cache_is_safe(path, &error) != 0 || qutc_make_directories(path, &error) != 0)
        cli_report(stderr, path, "cannot be the cache, so that tables are made anew: %s (--cache DIR says another one)",
                   error.detail);
    else if (!realpath(path, whole) || strlen(whole) >= sizeof settings->cache || strpbrk(whole, ";\n"))
        cli_report(stderr, path, "cannot be the cache: its name is too long, or has a semicolon in it");
    else
        memcpy(settings->cache, whole, strlen(whole) + 1);
    free(directory);
    return CLI_GO_ON;
}

// Not closed: what still makes a table at the end of a recording may be asking.
static bool open_elsewhere(struct record_command_options *options)
{
    const char *cache = options->settings.cache;
    const struct elsewhere_options wanted = {.urls = options->servers.urls,
                                             .url_count = options->servers.url_count,
                                             .key = options->servers.key,
                                             .cache_directory = *cache ? cache : NULL};
    static struct elsewhere *volatile opened; // as long as the process, and not lost meanwhile
    struct base_error error = {0};
    options->elsewhere = wanted.url_count ? elsewhere_open(&wanted, &error) : NULL;
    opened = options->elsewhere;
    if (!opened && wanted.url_count)
        cli_report(stderr, "--tables-url", "%s", error.detail);
    return opened || !wanted.url_count;
}

// ---- a command

static int finish(const struct record_command_options *options, const struct record_result *result)
{
    bool is_incomplete = result->first_failure[0] || result->processes_failed || !result->is_kept;
    if (!result->is_kept && !cli_record_show_left(options->path, result))
        cli_report(stderr, options->path,
                   "nothing was recorded: the agent never answered. Is its file readable for the command, and does "
                   "the command keep LD_PRELOAD?");
    else if (!result->is_kept)
        cli_report(stderr, options->path, "nothing was recorded");
    if (options->calls)
        is_incomplete |= !cli_calls_summary(options, result);
    if (!options->calls || options->settings.trigger != QUT_TRIGGER_NONE)
        cli_record_summary_inside(options, result);
    if (result->first_failure[0])
        cli_report(stderr, options->path, "could not be written %llu times; the first: %s",
                   (unsigned long long)(result->failed_writes ? result->failed_writes : 1), result->first_failure);
    if (options->pid)
        return is_incomplete || result->is_agent_left ? CLI_NO : CLI_OK;
    if (result->command_status > 0)
        return result->command_status;
    if (result->command_status < 0)
        return 128 + result->left_by;
    return is_incomplete ? CLI_NO : CLI_OK;
}

static int record_inside(struct work *work)
{
    const struct record_command_options *options = work->options;
    const struct record_options recorded = {.path = options->path,
                                            .command = options->command,
                                            .program = &work->program,
                                            .pid = work->pid,
                                            .agent_path = work->agent_path,
                                            .settings = options->settings,
                                            .duration_ns = options->duration_ns,
                                            .wait_for_all = options->wait_for_all,
                                            .live = options->live,
                                            .calls = options->calls,
                                            .begun = options->begun,
                                            .begun_context = options->begun_context,
                                            .take = options->elsewhere ? elsewhere_take : NULL,
                                            .take_context = options->elsewhere,
                                            .tells_waits = !options->quiet && !work->show.is_shown,
                                            .say = say,
                                            .status = work->show.is_shown ? show_status : NULL,
                                            .context = work};
    struct record_result result;
    struct base_error error = {0};
    int status = CLI_BAD;
    int failed = record_run(&recorded, &result, &status, &error);
    cli_record_show_clear(&work->show);
    if (failed) {
        char number[24];
        snprintf(number, sizeof number, "%d", options->pid);
        if (options->command && status != CLI_BAD) // as shells say it
            cli_report(stderr, options->command[0], "%s", error.detail);
        else
            cli_report_error(stderr, options->pid ? number : options->command[0], &error);
        return status;
    }
    return finish(options, &result);
}

static int record_by_injection(struct work *work)
{
    struct base_error error = {0};
    struct attach_error refused;
    pid_t tid = 0;
    work->pid = work->options->pid;
    if (attach_refuse(&work->pid, &tid, &refused) != 0) {
        cli_report(stderr, NULL, "%s", refused.text);
        return CLI_BAD;
    }
    if (record_output_check(work->options->path, &error) != 0) {
        cli_report_error(stderr, work->options->path, &error);
        return CLI_BAD;
    }
    if (record_find_agent(work->agent_path, &error) != 0) {
        cli_report_error(stderr, AGENT_FILE, &error);
        return CLI_BAD;
    }
    return record_inside(work);
}

static int record_a_command(struct work *work)
{
    const struct record_command_options *options = work->options;
    struct base_error error = {0};
    struct program self;
    int status = record_program_find(&work->program, options->command[0], &error);
    if (status) {
        cli_report(stderr, options->command[0], "%s", error.detail);
        return status;
    }
    if (record_output_check(options->path, &error) != 0) {
        cli_report_error(stderr, options->path, &error);
        return CLI_BAD;
    }
    record_program_self(&self);
    const char *refused = record_program_refuses_agent(&work->program, &self);
    if (!refused && record_find_agent(work->agent_path, &error) != 0) {
        cli_report_error(stderr, AGENT_FILE, &error);
        return CLI_BAD;
    }
    if (!refused)
        return record_inside(work);
    if (options->calls) {
        cli_report(stderr, options->command[0], "%s: calls are traced from inside", refused);
        return CLI_BAD;
    }
    cli_report(stderr, options->command[0], "%s; sampled from outside%s", refused,
               options->wants_calls ? ", so that --sync has no effect" : "");
    return cli_record_outside_command(options, &work->program);
}

// Before anything is recorded that could not be told of.
static bool open_json(struct record_command_options *options)
{
    struct stat trace, json;
    if (!options->json_path)
        return true;
    bool is_the_trace = strcmp(options->json_path, options->path) == 0 ||
                        (stat(options->path, &trace) == 0 && stat(options->json_path, &json) == 0 &&
                         trace.st_dev == json.st_dev && trace.st_ino == json.st_ino);
    if (is_the_trace)
        cli_report(stderr, options->json_path, "cannot be the trace and its summary");
    else if (!(options->json = fopen(options->json_path, "we")))
        cli_report(stderr, options->json_path, "%s", strerror(errno));
    return options->json != NULL;
}

static int close_json(const struct record_command_options *options, int status)
{
    if (!options->json)
        return status;
    errno = EIO;
    bool is_whole = !ferror(options->json); // what was written before the end
    if (fclose(options->json) == 0 && is_whole)
        return status;
    cli_report(stderr, options->json_path, "%s", strerror(errno));
    return status ? status : CLI_NO;
}

int cli_record_go(struct record_command_options *options)
{
    int status = take_cache(options);
    if (status != CLI_GO_ON)
        return status;
    if (!open_json(options))
        return CLI_BAD;
    if (!open_elsewhere(options))
        return CLI_BAD;
    struct work *work = calloc(1, sizeof *work);
    if (!work) {
        cli_report(stderr, "record", "no memory");
        return CLI_BAD;
    }
    work->options = options;
#ifdef __GLIBC__
    // Else what is freed raises it, and calloc clears large tables of which next to nothing is used.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    // And each of our threads would ask for its memory by a few pages, and give it back between two tables.
    mallopt(M_TOP_PAD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
    cli_record_show_begin(&work->show, options->quiet || (options->calls && options->calls->probe));
    status = !options->pid     ? record_a_command(work)
             : options->inject ? record_by_injection(work)
                               : cli_record_outside_process(options);
    free(work);
    return close_json(options, status);
}
