// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/bundle.h"
#include "qutc/cache.h"
#include "qutc/cli/bundle_files.h"
#include "qutc/cli/options.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"

static int read_tables(const struct cli_paths *paths, struct qutc_bundle_item *items, size_t *count)
{
    int status = CLI_OK;
    for (size_t i = 0; i < paths->count; i++) {
        struct qutc_table_file file;
        struct base_error error = {0};
        if (qutc_table_file_read(paths->items[i], &file, &error) != 0) {
            cli_report_error(stderr, paths->items[i], &error);
            status = CLI_NO;
            continue;
        }
        items[(*count)++] = (struct qutc_bundle_item){cli_basename(paths->items[i]), file.bytes, file.size};
    }
    return *count ? status : CLI_BAD;
}

static int write_bundle(const struct cli_options *options, struct qutc_bundle_item *items, size_t count)
{
    struct base_error error = {0};
    uint8_t *bytes;
    size_t size;
    if (qutc_bundle_pack(items, count, &bytes, &size, &error) != 0 ||
        qutc_publish(options->output, bytes, size, true, &error) != 0) {
        cli_report_error(stderr, options->output, &error);
        free(bytes);
        return CLI_BAD;
    }
    free(bytes);
    uint64_t unpacked_bytes = 0;
    for (size_t i = 0; i < count; i++)
        unpacked_bytes += items[i].size;
    if (!options->quiet) {
        cli_print_name(stdout, options->output);
        printf(": tables=%zu bytes=%zu (%.1f%% of %" PRIu64 ")\n", count, size,
               100.0 * (double)size / (double)unpacked_bytes, unpacked_bytes);
    }
    return CLI_OK;
}

static int run_pack(const struct cli_options *options)
{
    if (!options->output) {
        cli_report(stderr, "pack", "-o BUNDLE is missing; see qutc pack --help");
        return CLI_BAD;
    }
    struct cli_paths paths = {0};
    int status = CLI_OK;
    for (int i = 0; i < options->operand_count && status == CLI_OK; i++)
        status = cli_paths_add(&paths, options->operands[i]);
    size_t count = 0;
    struct qutc_bundle_item *items = calloc(paths.count + 1, sizeof *items);
    if (status == CLI_OK && !items) {
        cli_report(stderr, "pack", "out of memory");
        status = CLI_BAD;
    }
    if (status == CLI_OK && paths.count == 0) {
        cli_report(stderr, "pack", "no tables found");
        status = CLI_BAD;
    }
    if (status == CLI_OK)
        status = read_tables(&paths, items, &count);
    if (status != CLI_BAD && write_bundle(options, items, count) != CLI_OK)
        status = CLI_BAD;
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)items[i].table);
    free(items);
    cli_paths_free(&paths);
    return status;
}

static const struct cli_usage usage = {
    .run = run_pack,
    .option_set = CLI_OPT_OUTPUT | CLI_OPT_QUIET,
    .operands_min = 1,
    .operands_max = -1,
    .help = "Usage: qutc pack -o BUNDLE TABLE...|DIR\n\n"
            "Puts tables, or all *.qut files of a directory, into one compressed file.\n\n"
            "Example: qutc pack -o system.qutz ~/.cache/qut/tables\n",
};
const struct cli_command command_pack = {"pack", "put tables into one bundle", cli_run, &usage};
