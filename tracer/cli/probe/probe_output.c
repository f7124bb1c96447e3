// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "tracer/collect/collect.h"
#include "tracer/record/output.h"

void cli_probe_output_begin(struct probe_output *output, const char *path)
{
    *output = (struct probe_output){.path = path, .fd = -1};
}

// FILE.parts stays where something else is in it.
static void remove_part(const struct probe_output *output)
{
    char folder[sizeof output->part];
    unlink(output->part);
    memcpy(folder, output->part, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        rmdir(folder);
    }
}

static int open_part(struct probe_output *output, struct output *file, struct base_error *error)
{
    output->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    if (output->fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "no descriptor: %s", strerror(errno));
    const int part_fd = record_output_part(file, (uint32_t)getpid(), output->part, sizeof output->part, error);
    if (part_fd >= 0 && probing_collect(output->probing, part_fd, error) == 0)
        return 0;
    if (part_fd >= 0)
        remove_part(output);
    return -1;
}

static void begun(void *context, struct output *file)
{
    struct probe_output *output = context;
    struct base_error error = {0};
    char text[256];
    if (open_part(output, file, &error) == 0)
        return;
    output->has_failed = true;
    cli_report(stderr, output->path, "the script's values are not put there: %s",
               base_error_text(&error, text, sizeof text));
}

void cli_probe_output_join(struct probe_output *output, struct probing *probing, struct record_command_options *record)
{
    output->probing = probing;
    if (!output->path)
        return;
    record->begun = begun;
    record->begun_context = output;
}

bool cli_probe_output_is_open(const struct probe_output *output)
{
    return output->fd >= 0;
}

static int append(const struct probe_output *output)
{
    struct base_error error = {0};
    const int fd = open(output->part, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        base_fail(&error, BASE_ERR_IO, "", 0, "%s", strerror(errno));
    const int status = fd < 0 ? -1 : collect_append(output->fd, fd, &error);
    if (fd >= 0)
        close(fd);
    if (status == 0) {
        remove_part(output);
        return CLI_OK;
    }
    char text[256];
    cli_report(stderr, output->path, "the script's values could not be put there, and are in %s: %s", output->part,
               base_error_text(&error, text, sizeof text));
    return CLI_NO;
}

static int say_losses(const struct probe_output *output, const struct probing_track_result *result)
{
    char text[256];
    if (result->failure.reason)
        cli_report(stderr, output->path, "the script's values could not be written, or not all: %s",
                   base_error_text(&result->failure, text, sizeof text));
    if (result->lost_values || result->lost_lines)
        cli_report(stderr, output->path, "%s values and %s lines of printf had no room",
                   base_quantity_count(result->lost_values).text, base_quantity_count(result->lost_lines).text);
    if (result->is_short)
        cli_report(stderr, output->path, "no memory for all of the script's values");
    const bool is_all = !result->failure.reason && !result->lost_values && !result->lost_lines && !result->is_short;
    return is_all ? CLI_OK : CLI_NO;
}

static void say_contents(const struct probe_output *output, const struct probing_track_result *result)
{
    cli_report(stderr, output->path, "%s counters and %s lines of the script",
               base_quantity_count(result->counters).text, base_quantity_count(result->lines).text);
    if (result->other_keys)
        cli_report(stderr, output->path, "%s keys have no counter: of a map with many the 16 greatest have one",
                   base_quantity_count(result->other_keys).text);
}

int cli_probe_output_end(struct probe_output *output, const struct probing_track_result *result, bool quiet)
{
    struct stat status;
    int missing = output->has_failed ? CLI_NO : CLI_OK;
    if (output->fd < 0)
        return missing;
    // Else the recording has said why not.
    const bool is_kept = fstat(output->fd, &status) != 0 || status.st_nlink != 0;
    if (is_kept && !missing)
        missing = say_losses(output, result);
    if (is_kept && result->is_made) {
        const int appended = append(output);
        missing = missing ? missing : appended;
        if (!appended && !quiet)
            say_contents(output, result);
    } else {
        remove_part(output);
    }
    close(output->fd);
    output->fd = -1;
    return missing;
}
