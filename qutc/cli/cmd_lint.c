// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "qutc/cli/batch.h"
#include "qutc/cli/load_table.h"
#include "qutc/lint.h"
#include "qutc/table/rule_text.h"

// What a worker tells besides its text.
enum { SUM_FUNCTIONS, SUM_FOLLOWED, SUM_INSTRUCTIONS, SUM_DIFFER, SUM_UNJUDGED, SUM_UNSTATED };

static const char *what_differs(const struct arch *arch, uint8_t reg)
{
    return reg == QUT_NO_REGISTER ? "CFA" : reg == arch->ra_reg ? "return address" : arch->register_names[reg];
}

static void print_json(const char *name, const struct arch *arch, const struct qutc_lint_result *result, FILE *output)
{
    char text[TABLE_RULE_TEXT_BYTES];
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", name);
    base_json_number(&json, "functions", result->functions);
    base_json_open(&json, "outcomes", '{');
    for (unsigned i = 0; i < CODE_OUTCOME_END; i++)
        if (result->outcomes[i])
            base_json_number(&json, code_outcome_name(i), result->outcomes[i]);
    base_json_close(&json, '}');
    base_json_number(&json, "instructions", result->instructions);
    base_json_number(&json, "agree", result->agree);
    base_json_number(&json, "differ", result->differ);
    base_json_number(&json, "differing_functions", result->spoiled);
    base_json_number(&json, "not_known", result->unjudged);
    base_json_number(&json, "not_stated", result->unstated);
    base_json_open(&json, "findings", '[');
    for (size_t i = 0; i < result->findings.count; i++) {
        const struct qutc_lint_finding *finding = &result->findings.items[i];
        base_json_open(&json, NULL, '{');
        base_json_number(&json, "function", finding->function);
        char symbol[256];
        snprintf(symbol, sizeof symbol, "%.*s", (int)finding->name_length, finding->name_length ? finding->name : "");
        if (finding->name_length)
            base_json_string(&json, "name", symbol);
        base_json_number(&json, "start", finding->pc);
        base_json_number(&json, "end", finding->end);
        base_json_number(&json, "instructions", finding->instructions);
        base_json_string(&json, "what", what_differs(arch, finding->reg));
        base_json_string(&json, "stated", table_rule_text(arch, &finding->stated, text));
        if (finding->has_followed)
            base_json_string(&json, "followed", table_rule_text(arch, &finding->followed, text));
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    base_json_close(&json, '}');
}

// By its symbol; what of it is no plain letter is a point.
static void print_function(FILE *output, const struct qutc_lint_finding *finding)
{
    if (finding->name_length == 0) {
        fprintf(output, "the function at 0x%" PRIx64, finding->function);
        return;
    }
    for (unsigned i = 0; i < finding->name_length; i++)
        fputc(finding->name[i] > ' ' && finding->name[i] <= '~' ? finding->name[i] : '.', output);
    fprintf(output, "+0x%" PRIx64, finding->pc - finding->function);
}

static void print_text(const char *name, const struct arch *arch, const struct qutc_lint_result *result, FILE *output,
                       bool quiet)
{
    char text[TABLE_RULE_TEXT_BYTES];
    for (size_t i = 0; i < result->findings.count && !quiet; i++) {
        const struct qutc_lint_finding *finding = &result->findings.items[i];
        cli_print_name(output, name);
        fprintf(output, ": 0x%" PRIx64 "-0x%" PRIx64 " in ", finding->pc, finding->end);
        print_function(output, finding);
        fprintf(output, ", instructions=%" PRIu32 ": %s: stated %s; ", finding->instructions,
                what_differs(arch, finding->reg), table_rule_text(arch, &finding->stated, text));
        fprintf(output, "code %s\n",
                finding->has_followed ? table_rule_text(arch, &finding->followed, text) : "loses it");
    }
    for (unsigned i = CODE_FOLLOWED + 1; i < CODE_OUTCOME_END && !quiet; i++) {
        if (!result->outcomes[i])
            continue;
        cli_print_name(output, name);
        fprintf(output, ": not followed: %s: %" PRIu64 " functions, the first at 0x%" PRIx64 "\n", code_outcome_name(i),
                result->outcomes[i], result->first[i]);
    }
    cli_print_name(output, name);
    fprintf(output,
            ": functions=%" PRIu64 " followed=%" PRIu64 " instructions=%" PRIu64 " differ=%" PRIu64
            " not_known=%" PRIu64 " not_stated=%" PRIu64 "\n",
            result->functions, result->outcomes[CODE_FOLLOWED], result->instructions, result->differ, result->unjudged,
            result->unstated);
}

static int lint_one(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                    struct base_error *error)
{
    const struct cli_input *input = &batch->inputs.items[index];
    struct cli_loaded loaded;
    struct qutc_lint_result result;
    if (cli_load_open(batch->options, &batch->inputs.elfs.items[input->elf], &loaded, error) != 0)
        return CLI_FAILED;
    int outcome = CLI_FAILED;
    if (qutc_lint(loaded.image, &result, error) == 0) {
        numbers[SUM_FUNCTIONS] = result.functions;
        numbers[SUM_FOLLOWED] = result.outcomes[CODE_FOLLOWED];
        numbers[SUM_INSTRUCTIONS] = result.instructions;
        numbers[SUM_DIFFER] = result.differ;
        numbers[SUM_UNJUDGED] = result.unjudged;
        numbers[SUM_UNSTATED] = result.unstated;
        if (batch->options->json)
            print_json(input->name, loaded.image->arch, &result, output);
        else
            print_text(input->name, loaded.image->arch, &result, output, batch->options->quiet);
        outcome = result.differ ? CLI_ANSWER_NO : CLI_DONE;
        qutc_lint_free(&result);
    }
    cli_unload(&loaded);
    return outcome;
}

static int run_lint(const struct cli_options *options)
{
    struct cli_batch batch = {.work = lint_one};
    int status = cli_batch_expand(&batch, options, false);
    if (status == CLI_OK) {
        status = cli_batch_run(&batch);
        const uint64_t *sums = batch.sums;
        if (batch.inputs.is_batch && !options->json)
            printf("total: functions=%" PRIu64 " followed=%" PRIu64 " instructions=%" PRIu64 " differ=%" PRIu64
                   " not_known=%" PRIu64 " not_stated=%" PRIu64 "\n",
                   sums[SUM_FUNCTIONS], sums[SUM_FOLLOWED], sums[SUM_INSTRUCTIONS], sums[SUM_DIFFER],
                   sums[SUM_UNJUDGED], sums[SUM_UNSTATED]);
    }
    cli_batch_free(&batch);
    return status;
}

static const struct cli_usage usage = {
    .run = run_lint,
    .option_set = CLI_OPT_JOBS | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES,
    .operands_min = 1,
    .operands_max = -1,
    .help =
        "Usage: qutc lint [--json] ELF|DIR...\n\n"
        "Follows the code of each function and prints where its unwind information states something else: function, "
        "instructions,\nwhat is stated, what the code says. The last line of each is FILE: functions=N followed=N "
        "instructions=N differ=N\nnot_known=N not_stated=N; --quiet prints it alone. Exit status 1 if any differ.\n\n"
        "Example: qutc lint /lib/x86_64-linux-gnu/libgcc_s.so.1\n",
};
const struct cli_command command_lint = {"lint", "where unwind information contradicts the code", cli_run, &usage};
