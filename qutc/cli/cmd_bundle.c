// SPDX-License-Identifier: Apache-2.0
// pack and unpack.
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
        struct qutc_error error = {0};
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
    struct qutc_error error = {0};
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
    if (!options->quiet)
        printf("%s: tables=%zu bytes=%zu (%.1f%% of %" PRIu64 ")\n", options->output, count, size,
               100.0 * (double)size / (double)unpacked_bytes, unpacked_bytes);
    return CLI_OK;
}

int cli_pack(const struct cli_options *options)
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

static int unpack_one(const struct cli_options *options, const struct qutc_bundle *bundle, uint32_t index)
{
    char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
    struct qutc_error error = {0};
    uint8_t *table;
    size_t size;
    char *path = NULL;
    qutc_bundle_name(bundle, index, name);
    int result = qutc_bundle_unpack(bundle, index, &table, &size, &error);
    if (result == 0 && asprintf(&path, "%s/%s", options->output ? options->output : ".", name) < 0) {
        path = NULL;
        result = qutc_fail(&error, QUTC_ERR_NO_MEMORY, "", 0, "path");
    }
    if (result == 0)
        result = qutc_publish(path, table, size, true, &error);
    if (result != 0)
        cli_report_error(stderr, name, &error);
    else if (!options->quiet)
        printf("%s\n", path);
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

int cli_unpack(const struct cli_options *options)
{
    struct qutc_error error = {0};
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
