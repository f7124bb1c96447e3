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

static int unpack_one(const struct cli_options *options, const struct qutc_bundle *bundle, uint32_t index)
{
    char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
    struct base_error error = {0};
    uint8_t *table;
    size_t size;
    char *path = NULL;
    qutc_bundle_name(bundle, index, name);
    int result = qutc_bundle_unpack(bundle, index, &table, &size, &error);
    if (result == 0 && asprintf(&path, "%s/%s", options->output ? options->output : ".", name) < 0) {
        path = NULL;
        result = base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "path");
    }
    if (result == 0)
        result = qutc_publish(path, table, size, true, &error);
    if (result != 0)
        cli_report_error(stderr, name, &error);
    else if (!options->quiet) {
        cli_print_name(stdout, path);
        putchar('\n');
    }
    free(path);
    free(table);
    return result;
}

static bool is_wanted(const struct cli_options *options, const char *name)
{
    if (options->operand_count == 1)
        return true;
    for (int i = 1; i < options->operand_count; i++)
        if (strcmp(options->operands[i], name) == 0)
            return true;
    return false;
}

static int report_missing(const struct cli_options *options, const struct qutc_bundle *bundle)
{
    int missing = 0;
    char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
    for (int i = 1; i < options->operand_count; i++) {
        bool is_found = false;
        for (uint32_t j = 0; j < bundle->entry_count && !is_found; j++) {
            qutc_bundle_name(bundle, j, name);
            is_found = strcmp(name, options->operands[i]) == 0;
        }
        if (!is_found)
            cli_report(stderr, options->operands[i], "not in this bundle");
        missing += !is_found;
    }
    return missing;
}

static int run_unpack(const struct cli_options *options)
{
    struct base_error error = {0};
    struct cli_bundle_file file;
    if (cli_bundle_read(options->operands[0], &file, &error) != 0) {
        cli_report_error(stderr, options->operands[0], &error);
        return CLI_BAD;
    }
    int status = CLI_BAD;
    if (options->output && qutc_make_directories(options->output, &error) != 0) {
        cli_report_error(stderr, options->output, &error);
    } else {
        int failed = report_missing(options, &file.bundle);
        uint32_t written = 0;
        for (uint32_t i = 0; i < file.bundle.entry_count; i++) {
            char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
            qutc_bundle_name(&file.bundle, i, name);
            if (!is_wanted(options, name))
                continue;
            if (unpack_one(options, &file.bundle, i) == 0)
                written++;
            else
                failed++;
        }
        status = failed == 0 ? CLI_OK : written ? CLI_NO : CLI_BAD;
    }
    free(file.bytes);
    return status;
}

static const struct cli_usage usage = {
    .run = run_unpack,
    .option_set = CLI_OPT_OUTPUT | CLI_OPT_QUIET,
    .operands_min = 1,
    .operands_max = -1,
    .help = "Usage: qutc unpack [-o DIR] BUNDLE [NAME...]\n\n"
            "Writes the tables with these names, or all, to DIR (default: here).\n\n"
            "Example: qutc unpack -o tables system.qutz\n",
};
const struct cli_command command_unpack = {"unpack", "take tables out of a bundle", cli_run, &usage};
