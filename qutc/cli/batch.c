// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/progress.h"

struct batch_run {
    struct cli_batch *batch;
    struct progress progress;
    bool has_printed; // an object of the JSON array
};

void cli_batch_free(struct cli_batch *batch)
{
    cli_inputs_free(&batch->inputs);
}

static void print_json_failure(FILE *output, const char *name, const char *why)
{
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", name);
    base_json_string(&json, "error", why);
    base_json_close(&json, '}');
}

static void print_json_failures(const struct cli_inputs *inputs)
{
    for (size_t i = 0; i < inputs->failures.count; i++) {
        fputs(i ? ",\n" : "", stdout);
        print_json_failure(stdout, inputs->failures.items[i].name, inputs->failures.items[i].why);
    }
}

int cli_batch_expand(struct cli_batch *batch, const struct cli_options *options, bool take_tables)
{
    batch->options = options;
    int status = cli_inputs_expand(options, take_tables, &batch->inputs);
    if (status != CLI_OK && options->json) {
        fputs("[", stdout);
        print_json_failures(&batch->inputs);
        fputs("]\n", stdout);
    }
    return status;
}

static void work_on_one(void *context, size_t index, FILE *output, FILE *errors, struct cli_tally *tally)
{
    struct batch_run *run = context;
    struct cli_batch *batch = run->batch;
    const struct cli_input *input = &batch->inputs.items[index];
    struct base_error error = {0};
    tally->outcome = batch->work(batch, index, output, tally->numbers, &error);
    if (tally->outcome == CLI_FAILED && error.reason == BASE_ERR_NO_UNWIND && !input->is_named)
        tally->outcome = CLI_NO_UNWIND;
    if (tally->outcome != CLI_FAILED)
        return;
    char text[256];
    cli_report_error(errors, input->name, &error);
    if (batch->options->json)
        print_json_failure(output, input->name, base_error_text(&error, text, sizeof text));
}

static void print_output(struct batch_run *run, const char *text)
{
    if (*text == '\0')
        return;
    if (run->batch->options->json)
        fputs(run->has_printed ? ",\n" : "", stdout);
    fputs(text, stdout);
    run->has_printed = true;
}

static bool take_result(void *context, const struct cli_pool_result *result)
{
    struct batch_run *run = context;
    struct cli_batch *batch = run->batch;
    const char *name = batch->inputs.items[result->index].name;
    cli_progress_end(&run->progress);
    if (result->has_died) {
        batch->outcomes[CLI_CRASHED]++;
        cli_report(stderr, name, "%s", result->death);
        if (batch->options->json) {
            fputs(run->has_printed ? ",\n" : "", stdout);
            print_json_failure(stdout, name, result->death);
            run->has_printed = true;
        }
        return true;
    }
    int outcome = result->tally.outcome;
    batch->outcomes[outcome >= 0 && outcome < CLI_OUTCOME_END ? outcome : CLI_CRASHED]++;
    for (unsigned i = 0; i < CLI_TALLY_NUMBERS; i++)
        batch->sums[i] += result->tally.numbers[i];
    print_output(run, result->output);
    if (*result->errors) {
        fflush(stdout); // so that both read in order on a terminal
        fputs(result->errors, stderr);
    }
    return !ferror(stdout);
}

static void step(void *context, size_t done, size_t index)
{
    struct batch_run *run = context;
    cli_progress_step_to(&run->progress, done, run->batch->inputs.count, run->batch->inputs.items[index].name);
}

static int status_of(const struct cli_batch *batch)
{
    const size_t *outcomes = batch->outcomes;
    const struct input_inputs *elfs = &batch->inputs.elfs;
    size_t failed = outcomes[CLI_FAILED] + outcomes[CLI_CRASHED] + batch->inputs.failed;
    size_t useful = outcomes[CLI_DONE] + outcomes[CLI_KEPT] + outcomes[CLI_ANSWER_NO];
    if (elfs->skipped_unreadable)
        cli_report(stderr, batch->options->command, "%zu files or directories could not be read",
                   elfs->skipped_unreadable);
    if (elfs->skipped_compressed)
        cli_report(stderr, batch->options->command, "%zu libraries passed over: compressed in their archive",
                   elfs->skipped_compressed);
    if (useful == 0) {
        if (failed == 0)
            cli_report(stderr, batch->options->command, "none of %zu files has unwind information",
                       outcomes[CLI_NO_UNWIND]);
        return CLI_BAD;
    }
    return failed || elfs->skipped_unreadable || outcomes[CLI_ANSWER_NO] ? CLI_NO : CLI_OK;
}

struct sized_piece {
    uint64_t size_bytes;
    size_t index;
};

static int by_size(const void *a, const void *b)
{
    const struct sized_piece *x = a, *y = b;
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes < y->size_bytes ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

// The largest file first: begun last, it would keep one worker busy while all others have nothing left. NULL: no
// memory, and no harm.
static size_t *largest_first(const struct cli_inputs *inputs)
{
    size_t *order = calloc(inputs->count + 1, sizeof *order);
    struct sized_piece *pieces = calloc(inputs->count + 1, sizeof *pieces);
    for (size_t i = 0; pieces && i < inputs->count; i++) {
        const struct cli_input *item = &inputs->items[i];
        const struct input *elf = item->table ? NULL : &inputs->elfs.items[item->elf];
        const char *path = elf ? elf->path : item->table;
        struct stat status;
        pieces[i].index = i;
        pieces[i].size_bytes = elf ? elf->size_bytes : 0;
        if (pieces[i].size_bytes == 0 && path && stat(path, &status) == 0)
            pieces[i].size_bytes = (uint64_t)status.st_size;
    }
    if (pieces && order) {
        qsort(pieces, inputs->count, sizeof *pieces, by_size);
        for (size_t i = 0; i < inputs->count; i++)
            order[i] = pieces[i].index;
    } else {
        free(order);
        order = NULL;
    }
    free(pieces);
    return order;
}

int cli_batch_run(struct cli_batch *batch)
{
    struct batch_run run = {.batch = batch};
    size_t *order = largest_first(&batch->inputs);
    cli_progress_begin(&run.progress, batch->options->command, batch->options->quiet || batch->inputs.count < 2);
    const struct cli_pool pool = {.count = batch->inputs.count,
                                  .jobs = batch->options->jobs,
                                  .order = order,
                                  .context = &run,
                                  .work = work_on_one,
                                  .take = take_result,
                                  .step = step};
    if (batch->options->json) {
        fputs("[", stdout);
        print_json_failures(&batch->inputs);
        run.has_printed = batch->inputs.failures.count > 0;
    }
    int result = cli_pool_run(&pool);
    int saved = errno;
    free(order);
    cli_progress_end(&run.progress);
    if (batch->options->json)
        fputs("]\n", stdout);
    if (result == 0)
        return status_of(batch);
    cli_report(stderr, batch->options->command, "cannot start a worker process: %s", strerror(saved));
    return CLI_BAD;
}
