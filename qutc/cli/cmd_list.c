// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "formats/qut_table_name_inline.h"
#include "libqut/arch/arch.h"
#include "qutc/cache.h"
#include "qutc/cli/bundle_files.h"
#include "qutc/cli/options.h"
#include "qutc/table_file.h"

struct listed {
    const char *name;
    uint8_t arch;
    const uint8_t *identity;
    uint8_t identity_size;
    uint64_t text_bytes;
    uint32_t rows;
    uint64_t table_bytes;
};

struct listing {
    struct base_json json;
    bool is_json;
    size_t count;
};

static void print_listed(struct listing *listing, const struct listed *listed)
{
    const char *arch = arch_by_id((enum qut_arch_id)listed->arch)->name;
    char identity[2 * 32 + 1];
    qut_hex(listed->identity, listed->identity_size, identity);
    struct base_json *json = &listing->json;
    if (listing->is_json) {
        base_json_open(json, NULL, '{');
        base_json_string(json, "name", listed->name);
        base_json_string(json, "arch", arch);
        base_json_string(json, "identity", identity);
        base_json_number(json, "text_bytes", listed->text_bytes);
        base_json_number(json, "rows", listed->rows);
        base_json_number(json, "table_bytes", listed->table_bytes);
        base_json_close(json, '}');
    } else {
        cli_print_name(stdout, listed->name);
        printf(" %s text=%" PRIu64 " rows=%" PRIu32 " bytes=%" PRIu64 " identity=%s\n", arch, listed->text_bytes,
               listed->rows, listed->table_bytes, identity);
    }
    listing->count++;
}

static int list_bundle(struct listing *listing, const char *path)
{
    struct cli_bundle_file file;
    struct base_error error = {0};
    if (cli_bundle_read(path, &file, &error) != 0) {
        cli_report_error(stderr, path, &error);
        return CLI_BAD;
    }
    for (uint32_t i = 0; i < file.bundle.entry_count; i++) {
        const struct qut_bundle_entry *entry = &file.bundle.entries[i];
        char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
        qutc_bundle_name(&file.bundle, i, name);
        struct listed listed = {.name = name,
                                .arch = entry->arch,
                                .identity = entry->identity,
                                .identity_size = entry->identity_size,
                                .text_bytes = entry->text_bytes,
                                .rows = entry->row_count,
                                .table_bytes = entry->unpacked_bytes};
        print_listed(listing, &listed);
    }
    free(file.bytes);
    return CLI_OK;
}

static int list_directory(struct listing *listing, const char *path)
{
    struct cli_paths paths = {0};
    int status = cli_paths_add(&paths, path);
    size_t refused = 0;
    for (size_t i = 0; i < paths.count && status == CLI_OK; i++) {
        struct qutc_table_file file;
        struct base_error error = {0};
        if (qutc_table_file_read(paths.items[i], &file, &error) != 0) {
            cli_report_error(stderr, paths.items[i], &error);
            refused++;
            continue;
        }
        const struct qut_table_header *header = file.table.header;
        struct listed listed = {.name = cli_basename(paths.items[i]),
                                .arch = header->arch,
                                .identity = header->identity,
                                .identity_size = header->identity_size,
                                .text_bytes = header->text_size,
                                .rows = header->row_count,
                                .table_bytes = file.size};
        print_listed(listing, &listed);
        qutc_table_file_free(&file);
    }
    cli_paths_free(&paths);
    return status != CLI_OK ? status : refused ? CLI_NO : CLI_OK;
}

// A cache that nothing was put into yet is empty, not missing.
static int list_cache(struct listing *listing)
{
    struct base_error error = {0};
    char *path;
    if (qutc_cache_directory(&path, &error) != 0) {
        cli_report_error(stderr, "cache", &error);
        return CLI_BAD;
    }
    struct stat status;
    bool is_missing = stat(path, &status) != 0 && errno == ENOENT;
    int result = is_missing ? CLI_OK : list_directory(listing, path);
    free(path);
    return result;
}

static int list_path(struct listing *listing, const char *path)
{
    struct stat status;
    bool is_directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    return is_directory ? list_directory(listing, path) : list_bundle(listing, path);
}

static int run_list(const struct cli_options *options)
{
    struct listing listing = {.json = {.stream = stdout}, .is_json = options->json};
    if (options->json)
        base_json_open(&listing.json, NULL, '[');
    int status = options->operand_count ? list_path(&listing, options->operands[0]) : list_cache(&listing);
    if (options->json) {
        base_json_close(&listing.json, ']');
        putchar('\n');
    }
    return status;
}

static const struct cli_usage usage = {
    .run = run_list,
    .option_set = CLI_OPT_JSON,
    .operands_max = 1,
    .help = "Usage: qutc list [BUNDLE|DIR]\n\n"
            "Prints name, architecture, text bytes, rows, table bytes and identity of each table (default: of the "
            "cache).\n\n"
            "Example: qutc list system.qutz\n",
};
const struct cli_command command_list = {"list", "say which tables a bundle or the cache has", cli_run, &usage};
