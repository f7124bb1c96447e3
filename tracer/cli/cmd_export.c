// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/progress.h"
#include "tracer/cli/selection_options.h"
#include "tracer/cli/trace_output.h"

static const char help_start[] = "Usage: qut export [FILE] -f FORMAT [-o OUT]\n"
                                 "       qut export FILE... -f FORMAT -o OUT\n\n"
                                 "Writes a trace in a format that other programs read:\n\n";

static const char help_end[] =
    "\nFILE is a .qtrace file, or the segment of a process that runs, or of one that died (/dev/shm/...); without one\n"
    "it is qut.qtrace, as of qut record. Without -f, OUT's name says the format; without -o, OUT is beside FILE. A\n"
    "file that is there is replaced when the new one is whole. Of parquet OUT is a folder, which may hold the tables "
    "of\n"
    "other traces. FILE may have labels: FILE,host=NAME,service=NAME,version=NAME. Several FILEs, of any hosts and "
    "runs,\n"
    "become one trace, but not of parquet and otlp, which have each one's labels: one FILE at a time there.\n\n"
    "What is missing in the trace is said first, on standard error; OUT has what there is, and the exit status is 1.\n"
    "With exit status 2 no OUT was written.\n\n"
    "Example: qut export app.qtrace -f speedscope\n"
    "         qut export app.qtrace -f pprof --kind lock --thread 'worker*' --between 1s,2.5s\n"
    "         qut export app.qtrace,host=web1 -f parquet -o fleet\n";

// With a line for each format.
static void make_help(char *text, size_t size)
{
    snprintf(text, size, "%s", help_start);
    for (unsigned i = 0; export_formats[i]; i++)
        snprintf(text + strlen(text), size - strlen(text), "  %-12s %s\n", export_formats[i]->name,
                 export_formats[i]->what);
    snprintf(text + strlen(text), size - strlen(text), "%s", help_end);
}

// The format with the longest extension that the name ends in.
static const struct export_format *format_of(const char *out)
{
    const struct export_format *found = NULL;
    size_t length = strlen(out);
    for (unsigned i = 0; export_formats[i]; i++) {
        size_t size = strlen(export_formats[i]->extension);
        if (size < length && strcmp(out + length - size, export_formats[i]->extension) == 0 &&
            (!found || size > strlen(found->extension)))
            found = export_formats[i];
    }
    return found;
}

static int parse(struct trace_options *options, int argc, char **argv)
{
    char help[4096];
    make_help(help, sizeof help);
    int status = cli_trace_options_parse(options, TRACE_EXPORT, help, argc, argv);
    if (status == CLI_GO_ON)
        status = cli_trace_options_files_together(options);
    if (status != CLI_GO_ON)
        return status;
    if (!options->format && options->out)
        options->format = format_of(options->out);
    if (!options->format)
        return cli_trace_options_refuse(options, "export",
                                        options->out ? "needs -f FORMAT: the name of the output does not tell"
                                                     : "needs -f FORMAT");
    if (options->no_names && !options->format->has_no_names)
        return cli_trace_options_refuse(options, "--no-names",
                                        "goes with pprof and otlp: the other formats are made of names");
    if (options->format->is_folder && options->weight >= 0)
        return cli_trace_options_refuse(options, "--weight",
                                        "does not go with tables: each weight is one of their columns");
    if (!options->format->has_labels)
        return CLI_GO_ON;
    if (options->file_count > 1)
        return cli_trace_options_refuse(options, options->files[1],
                                        "one argument too many: this format has the labels of one trace at a time");
    options->is_together = false; // the labels are the format's
    return cli_trace_options_labels(options->files[0], &options->labels) ? CLI_GO_ON : CLI_BAD;
}

// The part of the trace that is written.
static int select_part(struct trace_job *job, const struct trace *trace, struct base_error *error)
{
    const struct trace_options *options = job->options;
    struct selection_wanted wanted = options->wanted;
    if (!options->has_kind && options->format->is_timeline)
        wanted.kind = SELECTION_ALL;
    if (analysis_selection_make(&job->selection, trace, &wanted, error) != 0)
        return -1;
    return cli_selection_fits(options, trace->path, &job->selection) ? 0 : CLI_BAD;
}

static int write_format(const struct trace_job *job, const struct trace *trace, const struct names *names,
                        struct sink *sink, struct base_error *error)
{
    (void)trace;
    const struct export_format *format = job->options->format;
    struct progress progress;
    unsigned weight = job->selection.kind == SELECTION_ALL ? format->weight : (unsigned)job->selection.measure;
    const struct export_options wanted = {.weight = job->options->weight < 0 ? weight : (unsigned)job->options->weight,
                                          .no_names = job->options->no_names,
                                          .system_root = job->options->system_root,
                                          .labels = job->options->labels,
                                          .no_slices = job->options->no_slices,
                                          .progress = cli_progress_step,
                                          .progress_context = &progress};
    cli_progress_begin(&progress, format->name, job->options->quiet);
    int status = format->write(&job->selection, names, &wanted, sink, error);
    cli_progress_end(&progress);
    return status;
}

// What cannot be written is said of the file that it is.
static int write_folder(const struct trace_job *job, const struct trace *trace, const struct names *names,
                        struct sink *sink, struct base_error *error)
{
    (void)sink;
    const struct trace_options *options = job->options;
    struct tables_options wanted = {.labels = options->labels, .wanted = options->wanted};
    char at[PATH_MAX];
    if (!options->has_kind)
        wanted.wanted.kind = SELECTION_ALL;
    struct tables *tables = tables_make(trace, names, &wanted, error);
    const int status = tables ? tables_write_folder(tables, job->out, at, error) : -1;
    tables_free(tables);
    return status;
}

static int export_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct trace_options options = {.command = "export"};
    int status = parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    struct trace_job job = {.options = &options,
                            .extension = options.format->extension,
                            .is_binary = options.format->is_binary,
                            .is_gzip = options.format->is_gzip,
                            .select = select_part,
                            .is_folder = options.format->is_folder,
                            .write = options.format->is_folder ? write_folder : write_format};
    status = cli_trace_command_run(&job);
    analysis_selection_free(&job.selection);
    return status;
}

const struct cli_command command_export = {"export", "write a trace in a format that other programs read",
                                           export_command, NULL};
