// SPDX-License-Identifier: Apache-2.0
#include "tracer/export_command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/report.h"
#include "tracer/export/losses.h"
#include "tracer/export/sink.h"
#include "tracer/export_options.h"
#include "tracer/progress.h"

enum { MISSING_SHOWN = 5 };

static void say_loss(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

// FILE without ".qtrace", and the format's extension.
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

// Of several that had the number one after the other, the one with most samples. NULL: none had it.
static const struct trace_thread *find_thread(const struct trace *trace, uint32_t tid)
{
    const struct trace_thread *found = NULL;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (thread->tid == tid && (!found || thread->sample_count > found->sample_count))
            found = thread;
    }
    return found;
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

static struct names *look_up_names(const struct trace *trace, const struct export_command_options *options,
                                   struct qutc_error *error)
{
    struct progress progress;
    const struct names_options wanted = {.debug_root = options->debug_root,
                                         .system_root = options->system_root,
                                         .inlined = !options->no_inlines,
                                         .lines = options->lines,
                                         .debuginfod = options->debuginfod,
                                         .progress = progress_step,
                                         .progress_context = &progress};
    progress_begin(&progress, "names", options->quiet);
    struct names *names = names_of(trace, &wanted, error);
    progress_end(&progress);
    return names;
}

static int write_out(const struct trace *trace, const struct names *names, const struct export_command_options *options,
                     uint32_t uid, const char *out, struct qutc_error *error)
{
    const struct export_format *format = options->format;
    struct progress progress;
    const struct export_options wanted = {.thread = uid,
                                          .weight = options->weight < 0 ? format->weight : (unsigned)options->weight,
                                          .no_slices = options->no_slices,
                                          .progress = progress_step,
                                          .progress_context = &progress};
    struct sink *sink = sink_file(out, error);
    if (!sink)
        return -1;
    struct sink *into = format->is_gzip ? sink_gzip(sink) : sink;
    if (!into) {
        sink_close(sink, false, NULL);
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "output");
    }
    progress_begin(&progress, format->name, options->quiet);
    int status = format->write(trace, names, &wanted, into, error);
    progress_end(&progress);
    struct qutc_error closing = {0};
    if (sink_close(into, status == 0, &closing) != 0 && status == 0) {
        *error = closing;
        status = -1;
    }
    return status;
}

static int export_trace(const struct trace *trace, const struct export_command_options *options, const char *out)
{
    struct qutc_error error = {0};
    uint32_t uid = 0;
    if (!options->quiet)
        losses_say(trace, say_loss, (void *)(uintptr_t)options->file);
    if (options->tid) {
        const struct trace_thread *thread = find_thread(trace, options->tid);
        if (!thread) {
            cli_report(stderr, options->file, "no thread %u in it", options->tid);
            return CLI_BAD;
        }
        uid = thread->uid;
    }
    struct names *names = look_up_names(trace, options, &error);
    if (!names) {
        cli_report_error(stderr, options->file, &error);
        return CLI_BAD;
    }
    if (!options->quiet)
        say_missing_names(names);
    int status = write_out(trace, names, options, uid, out, &error);
    names_free(names);
    if (status != 0) {
        cli_report_error(stderr, out, &error);
        return CLI_BAD;
    }
    return trace->is_complete ? CLI_OK : CLI_NO;
}

int export_command(int argc, char **argv)
{
    struct export_command_options options;
    int status = export_options_parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    signal(SIGPIPE, SIG_IGN); // a reader that goes away is an error like another,
    signal(SIGXFSZ, SIG_IGN); // and so is a limit: no half file is left
    char *beside = options.out ? NULL : name_beside(options.file, options.format->extension);
    const char *out = options.out ? options.out : beside;
    struct trace trace;
    struct qutc_error error = {0};
    if (!out) {
        cli_report(stderr, options.file, "out of memory");
        return CLI_BAD;
    }
    if (trace_read(options.file, &trace, &error) != 0) {
        cli_report_error(stderr, options.file, &error);
        free(beside);
        return CLI_BAD;
    }
    status = export_trace(&trace, &options, out);
    trace_free(&trace);
    free(beside);
    return status;
}
