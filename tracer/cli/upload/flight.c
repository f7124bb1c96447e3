// SPDX-License-Identifier: Apache-2.0
// `qut monitor --inject PID` and `--eject PID`: each process for itself, and what became of each is said.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/upload/options.h"
#include "tracer/record/record.h"

static void say_error(int pid, const struct base_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%d", pid);
    cli_report(stderr, name, "%s", error->detail);
}

static void say_injected(int pid, const struct monitor_flight *flight, const struct monitor_flight_figures *figures)
{
    char name[32];
    snprintf(name, sizeof name, "%d", pid);
    cli_report(stderr, name, "records into %s; one thread stood still for %s", flight->folder,
               base_quantity_time(figures->stopped_ns).text);
    if (figures->tables_made)
        cli_report(stderr, figures->cache, "%" PRIu64 " %s made", figures->tables_made,
                   figures->tables_made == 1 ? "table" : "tables");
    if (figures->tables_failed)
        cli_report(stderr, figures->cache, "%" PRIu64 " %s could not be made", figures->tables_failed,
                   figures->tables_failed == 1 ? "table" : "tables");
}

// Also where it is to be quiet: it is why stacks end.
static void say_no_tables(const struct monitor_flight_figures *figures)
{
    if (*figures->no_tables)
        cli_report(stderr, figures->cache, "no tables are made: %s; where one is missing a stack ends, or is a guess",
                   figures->no_tables);
}

static int eject_all(const struct upload_options *options, const struct monitor_flight *flight)
{
    int status = CLI_OK;
    for (size_t i = 0; i < options->eject_count; i++) {
        struct base_error error = {0};
        if (monitor_eject(options->eject[i], flight, &error) == 0)
            continue;
        say_error(options->eject[i], &error);
        status = CLI_BAD;
    }
    return status;
}

static int inject_all(const struct upload_options *options, const struct monitor_flight *flight)
{
    int status = CLI_OK;
    for (size_t i = 0; i < options->inject_count; i++) {
        struct base_error error = {0};
        struct monitor_flight_figures figures;
        if (monitor_inject(options->inject[i], flight, &figures, &error) != 0) {
            say_error(options->inject[i], &error);
            status = CLI_BAD;
            continue;
        }
        if (!options->quiet)
            say_injected(options->inject[i], flight, &figures);
        say_no_tables(&figures);
    }
    return status;
}

int upload_options_fly(const struct upload_options *options)
{
    char agent[PATH_MAX], *folder = NULL;
    struct base_error error = {0};
    struct monitor_flight flight = {.agent_path = agent, .settings = options->settings ? options->settings : ""};
    if (options->file_count) {
        folder = realpath(options->files[0], NULL);
        if (!folder) {
            cli_report(stderr, options->files[0], "%s", strerror(errno));
            return CLI_BAD;
        }
        flight.folder = folder;
    }
    int status = CLI_OK;
    if (record_find_agent(agent, &error) != 0) {
        cli_report_error(stderr, AGENT_FILE, &error);
        status = CLI_BAD;
    } else {
        status = options->eject_count ? eject_all(options, &flight) : inject_all(options, &flight);
    }
    free(folder);
    return status;
}
