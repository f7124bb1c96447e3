// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <qut/frame.h>

#include "qutc/check/verify.h"
#include "qutc/cli/batch.h"
#include "qutc/cli/load_table.h"
#include "qutc/rows.h"
#include "qutc/table/rule_text.h"

// What a worker tells besides its text.
enum { SUM_ROWS, SUM_EXACT, SUM_REFUSED, SUM_WRONG, SUM_DISPUTED, SUM_ABSTAINED };

static void print_json(const char *name, const struct check_verify_result *result, FILE *output)
{
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", name);
    base_json_number(&json, "rows", result->rows);
    base_json_number(&json, "exact", result->exact);
    base_json_number(&json, "refused", result->refused);
    base_json_number(&json, "wrong", result->wrong);
    base_json_number(&json, "disputed", result->disputed);
    base_json_number(&json, "abstained", result->abstained);
    base_json_number(&json, "plt_leaf", result->plt_leaf);
    base_json_number(&json, "oat_headers", result->oat_headers);
    base_json_number(&json, "from_code", result->from_code);
    base_json_number(&json, "mended", result->mended);
    base_json_number(&json, "doubtful", result->doubtful);
    base_json_number(&json, "holes", result->holes);
    base_json_open(&json, "refused_by_reason", '{');
    for (unsigned i = 0; i < QUT_REFUSAL_END; i++)
        if (result->refused_by_reason[i])
            base_json_number(&json, qut_refusal_name(i), result->refused_by_reason[i]);
    base_json_close(&json, '}');
    base_json_open(&json, "readers", '[');
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
        const struct check_judge_count *judge = &result->judges[j];
        if (!judge->name || judge->rows + judge->abstained == 0)
            continue;
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "reader", judge->name);
        base_json_number(&json, "rows", judge->rows);
        base_json_number(&json, "abstained", judge->abstained);
        base_json_open(&json, "reasons", '{');
        for (unsigned i = 0; i < CHECK_ABSTAIN_REASONS_MAX && judge->reasons[i].rows; i++)
            base_json_number(&json, judge->reasons[i].text, judge->reasons[i].rows);
        base_json_close(&json, '}');
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    base_json_open(&json, "findings", '[');
    for (unsigned i = 0; i < result->finding_count; i++) {
        const struct check_finding *finding = &result->findings[i];
        base_json_open(&json, NULL, '{');
        base_json_string(&json, "kind", finding->disputed ? "disputed" : "wrong");
        base_json_number(&json, "start", finding->pc);
        base_json_number(&json, "end", finding->end);
        base_json_string(&json, "difference", finding->text);
        base_json_string(&json, "rule", finding->rule);
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    base_json_close(&json, '}');
}

static void print_details(const char *name, const struct check_verify_result *result, FILE *output)
{
    for (unsigned i = 0; i < result->finding_count; i++) {
        const struct check_finding *finding = &result->findings[i];
        cli_print_name(output, name);
        fprintf(output, ": %s: 0x%" PRIx64 "-0x%" PRIx64 ": %s; rule: %s\n", finding->disputed ? "disputed" : "wrong",
                finding->pc, finding->end, finding->text, finding->rule);
    }
    uint64_t unlisted = result->wrong + result->disputed;
    if (unlisted > result->finding_count && result->finding_count == CHECK_FINDINGS_MAX) {
        cli_print_name(output, name);
        fprintf(output, ": %" PRIu64 " more wrong or disputed\n", unlisted - result->finding_count);
    }
    for (unsigned i = 0; i < QUT_REFUSAL_END; i++) {
        if (!result->refused_by_reason[i])
            continue;
        cli_print_name(output, name);
        fprintf(output, ": refused: %s: %" PRIu64 " rows\n", qut_refusal_name(i), result->refused_by_reason[i]);
    }
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
        const struct check_judge_count *judge = &result->judges[j];
        for (unsigned i = 0; i < CHECK_ABSTAIN_REASONS_MAX && judge->reasons[i].rows; i++) {
            cli_print_name(output, name);
            fprintf(output, ": %s abstains: %" PRIu64 " times: %s\n", judge->name, judge->reasons[i].rows,
                    judge->reasons[i].text);
        }
    }
    if (result->oat_headers) {
        cli_print_name(output, name);
        fprintf(output, ": from OAT method headers, which no judge reads: %" PRIu64 " rows\n", result->oat_headers);
    }
    if (result->mended) {
        cli_print_name(output, name);
        fprintf(output, ": against what is stated, since the code proves it: %" PRIu64 " rows\n", result->mended);
    }
    if (result->doubtful) {
        cli_print_name(output, name);
        fprintf(output, ": doubtful, stated so while the code says otherwise: %" PRIu64 " rows\n", result->doubtful);
    }
    if (result->from_code) {
        cli_print_name(output, name);
        fprintf(output, ": from code, which no judge reads: %" PRIu64 " rows\n", result->from_code);
    }
    if (result->disputed || result->abstained) {
        cli_print_name(output, name);
        fprintf(output, ": disputed=%" PRIu64 " abstained=%" PRIu64 "\n", result->disputed, result->abstained);
    }
}

static void print_text(const struct cli_options *options, const char *name, const struct check_verify_result *result,
                       FILE *output)
{
    if (!options->quiet)
        print_details(name, result, output);
    cli_print_name(output, name);
    fprintf(output, ": rows=%" PRIu64 " exact=%" PRIu64 " refused=%" PRIu64 " wrong=%" PRIu64 "\n", result->rows,
            result->exact, result->refused, result->wrong);
}

// The table that was asked for, if it was made for this image.
static int load_given_table(const char *path, struct cli_loaded *loaded, struct base_error *error)
{
    if (qutc_table_file_read(path, &loaded->file, error) != 0)
        return -1;
    const struct qut_table_header *header = loaded->file.table.header;
    const struct input_image *image = loaded->image;
    if (header->arch == image->arch->id && header->identity_size == image->identity_size &&
        memcmp(header->identity, image->identity, image->identity_size) == 0)
        return 0;
    return base_fail(error, BASE_ERR_TABLE, "", 0, "%s", qut_table_fault_name(QUT_TABLE_FOREIGN));
}

// Compares, against what the code proves where the table was made so.
static int compare(const struct cli_options *options, const struct cli_loaded *loaded,
                   struct check_verify_result *result, struct base_error *error)
{
    const struct qut_table *table = &loaded->file.table;
    if (!options->check)
        return check_verify(table, loaded->image, options->judges, result, error);
    struct qutc_compile_stats stats = {0};
    struct qutc_rows rows = {
        .image = loaded->image, .stats = &stats, .error = error, .check = true, .keep_mended = true};
    int status = qutc_rows_read(&rows);
    const struct check_mended mended = {.text_start = rows.text_start, .rows = &rows.mended, .rules = &rows.rules};
    if (status == 0)
        status = check_verify_mended(table, loaded->image, options->judges, &mended, result, error);
    qutc_rows_free(&rows);
    return status;
}

static int verify_loaded(struct cli_batch *batch, const char *name, struct cli_loaded *loaded, FILE *output,
                         uint64_t numbers[CLI_TALLY_NUMBERS], struct base_error *error)
{
    const struct cli_options *options = batch->options;
    int loading =
        options->table ? load_given_table(options->table, loaded, error) : cli_load_compile(options, loaded, error);
    if (loading != 0)
        return CLI_FAILED;
    struct check_verify_result *result = calloc(1, sizeof *result);
    if (!result) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "findings");
        return CLI_FAILED;
    }
    int outcome = CLI_FAILED;
    if (compare(options, loaded, result, error) == 0) {
        numbers[SUM_ROWS] = result->rows;
        numbers[SUM_EXACT] = result->exact;
        numbers[SUM_REFUSED] = result->refused;
        numbers[SUM_WRONG] = result->wrong;
        numbers[SUM_DISPUTED] = result->disputed;
        numbers[SUM_ABSTAINED] = result->abstained;
        if (options->json)
            print_json(name, result, output);
        else
            print_text(options, name, result, output);
        outcome = result->wrong ? CLI_ANSWER_NO : CLI_DONE;
    }
    free(result);
    return outcome;
}

static int verify_one(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                      struct base_error *error)
{
    const struct cli_input *input = &batch->inputs.items[index];
    struct cli_loaded loaded;
    if (cli_load_open(batch->options, &batch->inputs.elfs.items[input->elf], &loaded, error) != 0)
        return CLI_FAILED;
    int outcome = verify_loaded(batch, input->name, &loaded, output, numbers, error);
    cli_unload(&loaded);
    return outcome;
}

static void print_total(const struct cli_batch *batch)
{
    const uint64_t *sums = batch->sums;
    printf("total: files=%zu rows=%" PRIu64 " exact=%" PRIu64 " refused=%" PRIu64 " wrong=%" PRIu64,
           batch->outcomes[CLI_DONE] + batch->outcomes[CLI_ANSWER_NO], sums[SUM_ROWS], sums[SUM_EXACT],
           sums[SUM_REFUSED], sums[SUM_WRONG]);
    if (sums[SUM_DISPUTED])
        printf(" disputed=%" PRIu64, sums[SUM_DISPUTED]);
    if (sums[SUM_ABSTAINED])
        printf(" abstained=%" PRIu64, sums[SUM_ABSTAINED]);
    size_t failed = batch->outcomes[CLI_FAILED] + batch->outcomes[CLI_CRASHED] + batch->inputs.failed;
    if (batch->outcomes[CLI_NO_UNWIND])
        printf(" without_unwind_information=%zu", batch->outcomes[CLI_NO_UNWIND]);
    if (failed)
        printf(" failed=%zu", failed);
    putchar('\n');
}

static int run_verify(const struct cli_options *options)
{
    struct cli_batch batch = {.work = verify_one};
    int status = cli_batch_expand(&batch, options, false);
    if (status == CLI_OK && options->table && batch.inputs.count != 1) {
        cli_report(stderr, "--table", "goes with exactly one ELF file, not with %zu", batch.inputs.count);
        status = CLI_BAD;
    }
    if (status == CLI_OK) {
        status = cli_batch_run(&batch);
        if (batch.inputs.is_batch && !options->json)
            print_total(&batch);
    }
    cli_batch_free(&batch);
    return status;
}

static const struct cli_usage usage = {
    .run = run_verify,
    .option_set = CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_FILL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM |
                  CLI_OPT_DEBUG_FILES | CLI_OPT_AGAINST | CLI_OPT_TABLE,
    .operands_min = 1,
    .operands_max = -1,
    .help = "Usage: qutc verify [--against READER] [--json] [--table FILE] ELF...\n\n"
            "Compiles each ELF and compares every row with what libdw, libdwarf and readelf make of the file. The last "
            "line of\n"
            "each is FILE: rows=N exact=N refused=N wrong=N. Exit status 1 if any row is wrong.\n\n"
            "Example: qutc verify /bin/bash\n",
};
const struct cli_command command_verify = {"verify", "compare every row with independent readers", cli_run, &usage};
