// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "qutc/cache.h"
#include "qutc/cli/batch.h"
#include "qutc/cli/load_table.h"
#include "qutc/shelf/shelf.h"

struct fetch {
    struct shelf_source source;
    char *cache, *memory; // allocated
};

static void print_one(const struct cli_options *options, const char *name, const char *path, const char *status,
                      const char *url, FILE *output)
{
    if (options->json) {
        struct base_json json = {.stream = output};
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "file", name);
        if (path)
            base_json_string(&json, "table", path);
        base_json_string(&json, "status", status);
        if (url)
            base_json_string(&json, "url", url);
        base_json_close(&json, '}');
    } else if (!options->quiet) {
        cli_print_name(output, name);
        fputs(": ", output);
        if (path) {
            cli_print_name(output, path);
            fputs(": ", output);
        }
        fputs(status, output);
        if (url) {
            fputs(" from ", output);
            cli_print_name(output, url);
        }
        fputc('\n', output);
    }
}

static int take(const struct cli_batch *batch, const char *name, const char *path, const struct input_image *image,
                FILE *output, struct base_error *error)
{
    const struct fetch *fetch = batch->context;
    uint8_t *table;
    size_t size, from;
    bool is_there = false;
    const struct shelf_wanted wanted = shelf_wanted_of(image);
    // Tables with and without shared runs serve alike here.
    if (!batch->options->force && (qutc_cache_holds(path, image, false, &is_there, error) != 0 ||
                                   (!is_there && qutc_cache_holds(path, image, true, &is_there, error) != 0)))
        return CLI_FAILED;
    if (is_there) {
        print_one(batch->options, name, path, "up to date", NULL, output);
        return CLI_KEPT;
    }
    switch (shelf_take(&fetch->source, &wanted, &table, &size, &from, error)) {
    case SHELF_TAKEN: break;
    case SHELF_MISSING: print_one(batch->options, name, NULL, "no server has it", NULL, output); return CLI_ANSWER_NO;
    default: return CLI_FAILED;
    }
    int result = qutc_publish(path, table, size, true, error);
    free(table);
    if (result != 0)
        return CLI_FAILED;
    print_one(batch->options, name, path, "fetched", fetch->source.urls[from], output);
    return CLI_DONE;
}

static int fetch_one(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                     struct base_error *error)
{
    (void)numbers;
    const struct fetch *fetch = batch->context;
    const struct cli_input *input = &batch->inputs.items[index];
    struct cli_loaded loaded;
    if (cli_load_open(batch->options, &batch->inputs.elfs.items[input->elf], &loaded, error) != 0)
        return CLI_FAILED;
    char *path = NULL;
    int outcome = CLI_FAILED;
    if (qutc_cache_path(fetch->cache, loaded.image, qutc_cache_proof_by_user(), &path, error) == 0 &&
        qutc_cache_make_room(path, error) == 0)
        outcome = take(batch, input->name, path, loaded.image, output, error);
    free(path);
    cli_unload(&loaded);
    return outcome;
}

static int check_options(const struct cli_options *options)
{
    if (options->url_count == 0)
        cli_report(stderr, options->command, "--url URL is missing: no server is asked that nobody named");
    else if (!options->key && !options->is_unsigned)
        cli_report(stderr, options->command, "--key KEY is missing, or --unsigned: a build-id is no proof");
    else if (options->key && options->is_unsigned)
        cli_report(stderr, options->command, "--key or --unsigned, not both");
    else
        return CLI_OK;
    return cli_usage_error(options->command);
}

static int run_fetch(const struct cli_options *options)
{
    if (check_options(options) != CLI_OK)
        return CLI_BAD;
    struct cli_batch batch = {.work = fetch_one};
    struct fetch fetch = {.source = {.urls = options->urls,
                                     .url_count = options->url_count,
                                     .key = options->key,
                                     .timeout_ms = options->timeout_ms}};
    struct base_error error = {0};
    int status = cli_batch_expand(&batch, options, false);
    if (status == CLI_OK &&
        (qutc_cache_directory(&fetch.cache, &error) != 0 || qutc_make_directories(fetch.cache, &error) != 0)) {
        cli_report_error(stderr, "cache", &error);
        status = CLI_BAD;
    }
    // With --force nothing is remembered: the servers are asked.
    if (status == CLI_OK && !options->force && asprintf(&fetch.memory, "%s/servers", fetch.cache) < 0)
        fetch.memory = NULL;
    fetch.source.memory = fetch.memory;
    if (status == CLI_OK) {
        batch.context = &fetch;
        status = cli_batch_run(&batch);
    }
    const size_t *outcomes = batch.outcomes;
    if (status != CLI_BAD && batch.inputs.is_batch && !options->quiet && !options->json)
        printf("total: %zu fetched, %zu up to date, %zu on no server, %zu failed\n", outcomes[CLI_DONE],
               outcomes[CLI_KEPT], outcomes[CLI_ANSWER_NO],
               outcomes[CLI_FAILED] + outcomes[CLI_CRASHED] + batch.inputs.failed);
    free(fetch.memory);
    free(fetch.cache);
    cli_batch_free(&batch);
    return status;
}

static const struct cli_usage usage = {
    .run = run_fetch,
    .option_set = CLI_OPT_FETCH | CLI_OPT_JOBS | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_FORCE | CLI_OPT_SYSTEM,
    .operands_min = 1,
    .operands_max = -1,
    .help =
        "Usage: qutc fetch --url URL... (--key KEY | --unsigned) INPUT...\n\n"
        "Takes the table of each INPUT (as of qutc compile) that the cache lacks from servers with what qutc compile\n"
        "--layout made. A table is taken only if the index is signed, the file is the one that the index names, by "
        "size\n"
        "and SHA-256, and the table passes its check. What servers said is remembered for ten minutes (--force: "
        "not).\n\n"
        "Example: qutc fetch --url https://tables.example.org --key tables.pem --pid 4711\n",
};
const struct cli_command command_fetch = {"fetch", "take tables from servers, by build-id", cli_run, &usage};
