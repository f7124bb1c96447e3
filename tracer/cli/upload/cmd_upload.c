// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/trace_output.h"
#include "tracer/cli/upload/options.h"
#include "tracer/export/losses.h"

struct job {
    struct upload_options options;
    struct upload_spool *spool;
    const char *file; // that requests are made of
    uint64_t made, made_bytes;
};

// ---- requests

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void list_line(void *context, const char *what, const char *text)
{
    (void)context;
    printf("  %s: ", what);
    cli_print_name(stdout, text);
    putchar('\n');
}

static int list_request(void *context, const struct upload_request *request, struct base_error *error)
{
    struct job *job = context;
    (void)error;
    printf("%s %s: %zu bytes before they are packed", upload_form_name(request->form), request->id, request->body.size);
    if (request->form == UPLOAD_FILE)
        printf(", the file itself, with all that qut info and qut report show");
    else
        printf(", %.3f to %.3f s%s", seconds(request->from_ns), seconds(request->to_ns),
               request->is_too_large ? ", too large: it would be dropped" : "");
    putchar('\n');
    upload_list(request, list_line, NULL);
    job->made++;
    job->made_bytes += request->body.size;
    return 0;
}

static int spool_request(void *context, const struct upload_request *request, struct base_error *error)
{
    static const char *const words[] = {[UPLOAD_WAITS_ALREADY] = "waits already",
                                        [UPLOAD_SENT_BEFORE] = "was sent before",
                                        [UPLOAD_DROPPED] = "dropped"};
    struct job *job = context;
    enum upload_taken how;
    if (upload_spool_take(job->spool, request, &how, error) != 0)
        return -1;
    if (how != UPLOAD_TAKEN && (how == UPLOAD_DROPPED || !job->options.quiet))
        cli_report(stderr, job->file, "%s: %s", request->id, words[how]);
    return 0;
}

static void say_loss(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

static int make_requests(struct job *job, upload_each *each, const struct trace *trace, struct base_error *error)
{
    const struct upload_options *options = &job->options;
    const struct trace_options names_wanted = {.debug_root = options->debug_root,
                                               .system_root = options->wanted.system_root,
                                               .no_inlines = options->no_inlines,
                                               .quiet = options->quiet};
    if (!options->quiet)
        export_losses_say(trace, say_loss, (void *)(uintptr_t)job->file);
    struct names *names = cli_trace_names(trace, &names_wanted, error);
    const int result = names ? upload_make(trace, names, &options->wanted, each, job, error) : -1;
    names_free(names);
    return result;
}

static int take_file(struct job *job, char *operand)
{
    upload_each *each = job->options.dry_run ? list_request : spool_request;
    struct base_error error = {0};
    struct trace trace;
    if (!cli_trace_options_labels(operand, &job->options.wanted.labels))
        return CLI_BAD;
    job->file = operand;
    bool is_whole = true;
    int result = trace_read(operand, &trace, &error);
    if (result == 0) {
        is_whole = trace.is_complete;
        result = job->options.wanted.form == UPLOAD_FILE ? upload_make_file(operand, each, job, &error)
                                                         : make_requests(job, each, &trace, &error);
        trace_free(&trace);
    }
    if (result != 0)
        cli_report_error(stderr, operand, &error);
    return result != 0 ? CLI_BAD : is_whole ? CLI_OK : CLI_NO;
}

// ---- the spool

static int run_spool(struct job *job)
{
    const struct upload_options *options = &job->options;
    struct base_error error = {0};
    struct upload_balance before, after;
    job->spool = upload_spool_open(options->spool, options->spool_bytes, &error);
    if (!job->spool) {
        cli_report_error(stderr, options->spool, &error);
        return CLI_BAD;
    }
    upload_spool_balance(job->spool, &before);
    int status = CLI_OK;
    // What waits is older: it is sent first.
    const bool sends_first = options->has_target && before.waiting && options->file_count;
    if (sends_first)
        status = upload_options_send(&job->options, job->spool);
    for (int i = 0; i < options->file_count; i++)
        status = upload_options_worse(status, take_file(job, options->files[i]));
    if (options->has_target && (!sends_first || status != CLI_BAD))
        status = upload_options_worse(status, upload_options_send(&job->options, job->spool));
    upload_spool_balance(job->spool, &after);
    upload_spool_close(job->spool);
    upload_options_show(&after);
    const bool is_less =
        after.dropped > before.dropped || after.rejected > before.rejected || (options->has_target && after.waiting);
    return upload_options_worse(status, is_less ? CLI_NO : CLI_OK);
}

static int upload_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct job job = {.spool = NULL};
    int status = upload_options_parse(&job.options, UPLOAD_COMMAND, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (!upload_options_can_send(&job.options, "upload", "it can fill a spool, and list"))
        return CLI_BAD;
    if (!job.options.dry_run)
        return run_spool(&job);
    status = CLI_OK;
    for (int i = 0; i < job.options.file_count; i++)
        status = upload_options_worse(status, take_file(&job, job.options.files[i]));
    printf("%" PRIu64 " requests, %" PRIu64 " bytes before they are packed; nothing was sent or kept\n", job.made,
           job.made_bytes);
    return status;
}

const struct cli_command command_upload = {"upload", "send traces to a receiver, and keep what cannot be sent yet",
                                           upload_command, NULL};
