// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/arguments.h"
#include "formats/qut_table_name_inline.h"
#include "qutc/cache.h"
#include "qutc/cli/batch.h"
#include "qutc/cli/load_table.h"
#include "qutc/cli/table_facts.h"
#include "qutc/shelf/shelf.h"

enum { NAME_IDENTITY_BYTES = 8 };

enum target_kind {
    TARGET_FILE,
    TARGET_DIRECTORY,
    TARGET_CACHE,
    TARGET_LAYOUT,
};

struct target {
    enum target_kind kind;
    char *path; // allocated
};

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int find_target(const struct cli_batch *batch, struct target *target, struct base_error *error)
{
    const char *output = batch->options->output;
    *target = (struct target){.kind = TARGET_CACHE};
    if (batch->options->layout) {
        target->kind = TARGET_LAYOUT;
        target->path = strdup(batch->options->layout);
        if (!target->path)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    } else if (output) {
        size_t length = strlen(output);
        bool names_directory = (length && output[length - 1] == '/') || is_directory(output);
        target->kind = names_directory || batch->inputs.is_batch ? TARGET_DIRECTORY : TARGET_FILE;
        target->path = strdup(output);
        if (!target->path)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    } else if (qutc_cache_directory(&target->path, error) != 0) {
        return -1;
    }
    return target->kind == TARGET_FILE ? 0 : qutc_make_directories(target->path, error);
}

// "libx.so" of "base.apk!lib/arm64-v8a/libx.so", fit to be a file's name.
static void plain_name(const char *name, char *plain, size_t plain_size)
{
    snprintf(plain, plain_size, "%s", cli_basename(name));
    for (char *at = plain; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._+-@", *at))
            *at = '_';
    if (plain[0] == '.')
        plain[0] = '_';
}

static int table_path(const struct target *target, const struct input_image *image, char **path,
                      struct base_error *error)
{
    if (target->kind == TARGET_CACHE)
        return qutc_cache_path(target->path, image, qutc_cache_proof_by_user(), path, error) ||
               qutc_cache_make_room(*path, error);
    int length;
    if (target->kind == TARGET_FILE || target->kind == TARGET_LAYOUT) {
        length = asprintf(path, "%s", target->path);
    } else {
        char name[128], identity[2 * NAME_IDENTITY_BYTES + 1];
        unsigned shown = image->identity_size < NAME_IDENTITY_BYTES ? image->identity_size : NAME_IDENTITY_BYTES;
        plain_name(image->name, name, sizeof name);
        qut_hex(image->identity, shown, identity);
        bool has_slash = target->path[strlen(target->path) - 1] == '/';
        length = asprintf(path, "%s%s%s-%s.qut", target->path, has_slash ? "" : "/", name, identity);
    }
    return length < 0 ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path") : 0;
}

// The table is one of what could be read.
static void print_left_out(const struct cli_loaded *loaded, FILE *output)
{
    const struct input_image *image = loaded->image;
    char why[256];
    if (image->damage_count)
        fprintf(output, "; %u parts left out, the first: %s", image->damage_count,
                base_error_text(&image->damage, why, sizeof why));
    if (loaded->stats.skipped_fdes)
        fprintf(output, "; %" PRIu64 " records left out, the first: %s", loaded->stats.skipped_fdes,
                base_error_text(&loaded->stats.first_skipped, why, sizeof why));
}

static void print_compiled(const struct cli_batch *batch, const char *name, const char *path,
                           const struct cli_loaded *loaded, FILE *output)
{
    const struct qut_table_header *header = loaded->file.table.header;
    if (batch->options->json) {
        struct base_json json = {.stream = output};
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "file", name);
        base_json_string(&json, "table", path);
        base_json_string(&json, "status", "compiled");
        base_json_number(&json, "rows", header->row_count);
        base_json_number(&json, "rules", header->rule_count);
        base_json_number(&json, "refused_rows", header->refused_rows);
        base_json_number(&json, "table_bytes", loaded->file.size);
        base_json_number(&json, "source_bytes", cli_source(header).bytes);
        base_json_number(&json, "skipped_fdes", loaded->stats.skipped_fdes);
        base_json_number(&json, "damaged_parts", loaded->image->damage_count);
        base_json_close(&json, '}');
    } else if (!batch->options->quiet) {
        struct cli_source source = cli_source(header);
        cli_print_name(output, name);
        fputs(": ", output);
        cli_print_name(output, path);
        fprintf(output, ": rows=%" PRIu32 " rules=%" PRIu32 " refused=%" PRIu32 " bytes=%zu", header->row_count,
                header->rule_count, header->refused_rows, loaded->file.size);
        if (source.bytes)
            fprintf(output, " (%.1f%% of %s)", 100.0 * (double)loaded->file.size / (double)source.bytes, source.name);
        print_left_out(loaded, output);
        fputc('\n', output);
    }
}

static void print_kept(const struct cli_batch *batch, const char *name, const char *path, FILE *output)
{
    if (batch->options->json) {
        struct base_json json = {.stream = output};
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "file", name);
        base_json_string(&json, "table", path);
        base_json_string(&json, "status", "up to date");
        base_json_close(&json, '}');
    } else if (!batch->options->quiet) {
        cli_print_name(output, name);
        fputs(": ", output);
        cli_print_name(output, path);
        fputs(": up to date\n", output);
    }
}

static int publish(const struct target *target, const char *path, const struct cli_loaded *loaded,
                   struct base_error *error)
{
    const struct qutc_table_file *file = &loaded->file;
    if (target->kind == TARGET_LAYOUT)
        return shelf_put(path, loaded->image, (struct base_bytes){file->bytes, file->size}, NULL, error);
    return qutc_publish(path, file->bytes, file->size, true, error);
}

static int compile_to(const struct cli_batch *batch, const char *name, const char *path, struct cli_loaded *loaded,
                      FILE *output, struct base_error *error)
{
    const struct target *target = batch->context;
    bool is_there = false;
    if (target->kind == TARGET_CACHE && !batch->options->force &&
        qutc_cache_holds(path, loaded->image, batch->options->small, &is_there, error) != 0)
        return CLI_FAILED;
    is_there |= target->kind == TARGET_LAYOUT && !batch->options->force && shelf_has(path, loaded->image);
    if (is_there) {
        print_kept(batch, name, path, output);
        return CLI_KEPT;
    }
    if (cli_load_compile(batch->options, loaded, error) != 0 || publish(target, path, loaded, error) != 0)
        return CLI_FAILED;
    print_compiled(batch, name, path, loaded, output);
    return CLI_DONE;
}

static int compile_one(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                       struct base_error *error)
{
    (void)numbers;
    const struct cli_input *input = &batch->inputs.items[index];
    struct cli_loaded loaded;
    if (cli_load_open(batch->options, &batch->inputs.elfs.items[input->elf], &loaded, error) != 0)
        return CLI_FAILED;
    char *path = NULL;
    int outcome = CLI_FAILED;
    if (table_path(batch->context, loaded.image, &path, error) == 0)
        outcome = compile_to(batch, input->name, path, &loaded, output, error);
    free(path);
    cli_unload(&loaded);
    return outcome;
}

static void print_summary(const struct cli_batch *batch, const char *where)
{
    const size_t *outcomes = batch->outcomes;
    printf("total: %zu compiled, %zu up to date, %zu without unwind information, %zu failed: ", outcomes[CLI_DONE],
           outcomes[CLI_KEPT], outcomes[CLI_NO_UNWIND],
           outcomes[CLI_FAILED] + outcomes[CLI_CRASHED] + batch->inputs.failed);
    cli_print_name(stdout, where);
    putchar('\n');
}

static int write_indexes(const struct cli_options *options, int status)
{
    struct shelf_totals totals;
    struct base_error error = {0};
    if (shelf_index(options->layout, options->sign, &totals, &error) != 0) {
        cli_report_error(stderr, options->layout, &error);
        return CLI_BAD;
    }
    if (!options->quiet && !options->json)
        printf("indexes: %zu written%s, with %zu tables\n", totals.indexes,
               options->sign ? " and signed" : ", unsigned", totals.tables);
    return status;
}

static int check_layout(const struct cli_options *options)
{
    if (options->layout && options->output)
        cli_report(stderr, options->command, "-o or --layout, not both");
    else if (options->sign && !options->layout)
        cli_report(stderr, options->command, "--sign: needs --layout");
    else
        return CLI_OK;
    return cli_usage_error(options->command);
}

static int run_compile(const struct cli_options *options)
{
    if (check_layout(options) != CLI_OK)
        return CLI_BAD;
    struct cli_batch batch = {.work = compile_one};
    struct target target = {0};
    struct base_error error = {0};
    int status = cli_batch_expand(&batch, options, false);
    if (status == CLI_OK && find_target(&batch, &target, &error) != 0) {
        const char *where = options->layout ? options->layout : options->output;
        cli_report_error(stderr, where ? where : "cache", &error);
        status = CLI_BAD;
    }
    if (status == CLI_OK) {
        batch.context = &target;
        status = cli_batch_run(&batch);
        if (batch.inputs.is_batch && !options->quiet && !options->json)
            print_summary(&batch, target.path);
        if (target.kind == TARGET_LAYOUT)
            status = write_indexes(options, status);
    }
    free(target.path);
    cli_batch_free(&batch);
    return status;
}

static const struct cli_usage usage = {
    .run = run_compile,
    .option_set = CLI_OPT_OUTPUT | CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_FILL | CLI_OPT_QUIET | CLI_OPT_JSON |
                  CLI_OPT_FORCE | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES | CLI_OPT_LAYOUT,
    .operands_min = 1,
    .operands_max = -1,
    .help = "Usage: qutc compile [-o FILE|DIR] [-j N] [--small] INPUT...\n\n"
            "Makes the table of each INPUT: an ELF or OAT file, an APK, a directory (searched to its leaves), --pid, "
            "--system.\n"
            "One table goes to FILE, several go to DIR as NAME-IDENTITY.qut. Without -o they go to the cache "
            "($QUT_CACHE, else\n"
            "$XDG_CACHE_HOME/qut/tables, else ~/.cache/qut/tables), where tables that are there already stay.\n"
            "With --layout they go to DIR by build-id, with an index, for qutc fetch to take from a server.\n\n"
            "Example: qutc compile -o libc.qut /lib/x86_64-linux-gnu/libc.so.6\n",
};
const struct cli_command command_compile = {"compile", "make tables", cli_run, &usage};
