// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/trace_output.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "cli/progress.h"
#include "tracer/export/losses.h"
#include "tracer/trace/together/together.h"

enum { MISSING_SHOWN = 5 };

// ---- what is read: a file, or files of many hosts and runs, put together

struct trace_inputs {
    struct trace_recording *items; // path and labels
    size_t count;
    bool is_together; // several, or one with labels
};

// Cuts the labels off the operands, where the command takes them. False: it has said why.
static bool inputs_make(struct trace_inputs *inputs, const struct trace_options *options)
{
    *inputs = (struct trace_inputs){.items = calloc((size_t)options->file_count + 1, sizeof *inputs->items),
                                    .count = (size_t)options->file_count};
    if (!inputs->items) {
        cli_report(stderr, options->command, "out of memory");
        return false;
    }
    inputs->is_together = inputs->count > 1;
    for (size_t i = 0; i < inputs->count; i++) {
        struct analysis_labels labels = {0};
        if (options->is_together && !cli_trace_options_labels(options->files[i], &labels))
            return false;
        inputs->is_together |= labels.host || labels.service || labels.version;
        inputs->items[i] = (struct trace_recording){
            .path = options->files[i], .host = labels.host, .service = labels.service, .version = labels.version};
    }
    return true;
}

static void inputs_free(struct trace_inputs *inputs)
{
    free(inputs->items);
    *inputs = (struct trace_inputs){0};
}

static void say_loss(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

static int read_one(const struct trace_recording *input, const struct trace_options *options, struct trace *trace,
                    struct base_error *error)
{
    if (trace_read(input->path, trace, error) != 0)
        return -1;
    if (!options->quiet)
        export_losses_say(trace, say_loss, (void *)(uintptr_t)input->path);
    return 0;
}

// One after the other: what is read stays only as what it adds to the whole.
static int put_together(const struct trace_inputs *inputs, const struct trace_options *options, struct merger *merger,
                        struct trace *trace)
{
    struct base_error error = {0};
    for (size_t i = 0; i < inputs->count; i++) {
        const struct trace_recording *input = &inputs->items[i];
        struct trace part;
        int status = read_one(input, options, &part, &error);
        if (status == 0) {
            status = together_add(merger, &part, input, &error);
            trace_free(&part);
        }
        if (status != 0) {
            cli_report_error(stderr, input->path, &error);
            return CLI_BAD;
        }
    }
    if (together_end(merger, trace, &error) == 0)
        return CLI_OK;
    cli_report_error(stderr, options->command, &error);
    return CLI_BAD;
}

static int inputs_read(const struct trace_inputs *inputs, const struct trace_options *options, struct trace *trace)
{
    struct base_error error = {0};
    struct merger merger;
    if (!inputs->is_together) {
        if (read_one(&inputs->items[0], options, trace, &error) == 0)
            return CLI_OK;
        cli_report_error(stderr, inputs->items[0].path, &error);
        return CLI_BAD;
    }
    if (!trace_merge_begin(&merger)) {
        cli_report(stderr, options->command, "out of memory");
        return CLI_BAD;
    }
    const int status = put_together(inputs, options, &merger, trace);
    trace_merge_free(&merger);
    if (status != CLI_OK)
        trace_memory_free(merger.memory);
    return status;
}

// ---- what is written

// FILE without ".qtrace", and the extension.
static char *name_beside(const char *file, const char *extension)
{
    static const char own[] = ".qtrace";
    size_t length = strlen(file), size = length + strlen(extension) + 1;
    if (length > sizeof own - 1 && strcmp(file + length - (sizeof own - 1), own) == 0)
        length -= sizeof own - 1;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s%s", (int)length, file, extension);
    return name;
}

bool cli_is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

// What cannot be meant. NULL: nothing.
static const char *refusal(const struct trace_job *job, const struct trace_inputs *inputs, const char *out)
{
    if (job->is_folder && strcmp(out, "-") == 0)
        return "is no place for a folder: -o OUT";
    if (strcmp(out, "-") == 0)
        return job->is_binary && isatty(STDOUT_FILENO) ? "is a terminal, and this format is no text: -o OUT, or a pipe"
                                                       : NULL;
    for (size_t i = 0; i < inputs->count; i++)
        if (cli_is_same_file(inputs->items[i].path, out))
            return inputs->count > 1 ? "is one of the traces" : "is the trace itself";
    return NULL;
}

static void say_missing_names(const struct names *names)
{
    const struct names_missing *missing;
    size_t count = names_missing(names, &missing);
    for (size_t i = 0; i < count && i < MISSING_SHOWN; i++)
        cli_report(stderr, missing[i].path, "%zu places have no names: %s", missing[i].node_count, missing[i].why);
    if (count > MISSING_SHOWN)
        cli_report(stderr, "names", "%zu more modules have none", count - MISSING_SHOWN);
}

struct names *cli_trace_names(const struct trace *trace, const struct trace_options *options, struct base_error *error)
{
    struct progress progress;
    const struct names_options wanted = {.debug_root = options->debug_root,
                                         .system_root = options->system_root,
                                         .inlined = !options->no_inlines,
                                         .lines = options->lines,
                                         .debuginfod = options->debuginfod,
                                         .progress = cli_progress_step,
                                         .progress_context = &progress};
    cli_progress_begin(&progress, "names", options->quiet);
    struct names *names = names_of(trace, &wanted, error);
    cli_progress_end(&progress);
    if (names && !options->quiet)
        say_missing_names(names);
    return names;
}

static struct sink *open_out(const struct trace_job *job, const char *out, struct base_error *error)
{
    struct sink *sink = sink_file(out, error);
    if (!sink || !job->is_gzip)
        return sink;
    struct sink *into = sink_gzip(sink);
    if (!into) {
        sink_close(sink, false, NULL);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "output");
    }
    return into;
}

static int write_trace(const struct trace_job *job, const struct trace *trace, struct sink *sink,
                       struct base_error *error)
{
    struct names *names = cli_trace_names(trace, job->options, error);
    int status = names ? job->write(job, trace, names, sink, error) : -1;
    names_free(names);
    struct base_error closing = {0};
    if (sink && sink_close(sink, status == 0, &closing) != 0 && status == 0) {
        *error = closing;
        status = -1;
    }
    return status;
}

// OUT is opened before names are looked up: that it cannot be written is said at once, not after minutes.
static int make_out(struct trace_job *job, const struct trace *trace, const char *out)
{
    struct base_error error = {0};
    int status = job->select ? job->select(job, trace, &error) : 0;
    if (status > 0)
        return status;
    if (status < 0) {
        cli_report_error(stderr, trace->path, &error);
        return CLI_BAD;
    }
    job->out = out;
    struct sink *sink = job->is_folder ? NULL : open_out(job, out, &error);
    if ((!sink && !job->is_folder) || write_trace(job, trace, sink, &error) != 0) {
        cli_report_error(stderr, out, &error);
        return CLI_BAD;
    }
    return trace->is_complete ? CLI_OK : CLI_NO;
}

static int run(struct trace_job *job, const struct trace_inputs *inputs, const char *out)
{
    const char *why = refusal(job, inputs, out);
    if (why) {
        cli_report(stderr, strcmp(out, "-") == 0 ? "standard output" : out, "%s", why);
        return CLI_BAD;
    }
    struct trace trace;
    struct base_error error = {0};
    if (job->is_folder && tables_check_folder(out, &error) != 0) {
        cli_report_error(stderr, out, &error);
        return CLI_BAD;
    }
    if (inputs_read(inputs, job->options, &trace) != CLI_OK)
        return CLI_BAD;
    int status = make_out(job, &trace, out);
    trace_free(&trace);
    return status;
}

int cli_trace_command_run(struct trace_job *job)
{
    struct trace_inputs inputs = {0};
    char *beside = NULL;
    int status = CLI_BAD;
    signal(SIGPIPE, SIG_IGN); // a reader that goes away is an error like another,
    signal(SIGXFSZ, SIG_IGN); // and so is a limit: no half file is left
    const bool is_made = inputs_make(&inputs, job->options);
    if (is_made && !job->options->out)
        beside = name_beside(inputs.items[0].path, job->extension);
    if (is_made && !job->options->out && !beside)
        cli_report(stderr, job->options->command, "out of memory");
    else if (is_made)
        status = run(job, &inputs, beside ? beside : job->options->out);
    free(beside);
    inputs_free(&inputs);
    return status;
}
