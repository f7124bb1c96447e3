// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "qutc/cli/load_table.h"
#include "qutc/table/rule_text.h"

static void print_row(const struct cli_loaded *loaded, const struct cli_options *options, uint64_t start, uint64_t end,
                      const struct qut_rule *rule)
{
    char text[TABLE_RULE_TEXT_BYTES];
    if (rule->kind == QUT_RULE_HOLE && !options->all)
        return;
    printf("0x%" PRIx64 "-0x%" PRIx64 " %s\n", start, end, table_rule_text(loaded->arch, rule, text));
}

static int run_dump(const struct cli_options *options)
{
    struct cli_loaded loaded;
    int status = cli_load_operand(options, options->operands[0], &loaded);
    if (status != CLI_OK)
        return status;
    const struct qut_table *table = &loaded.file.table;
    uint64_t pc = table->text_start, end = 0, start = pc;
    struct qut_rule rule, last = {0};
    bool is_first = true;
    // Blocks cut rows; the reader need not see it.
    for (; runtime_table_next_row(table, &pc, &end, &rule); pc = end) {
        if (!is_first && memcmp(&rule, &last, sizeof rule) != 0) {
            print_row(&loaded, options, start, pc, &last);
            start = pc;
        }
        last = rule;
        is_first = false;
        if (ferror(stdout))
            break;
    }
    if (!is_first)
        print_row(&loaded, options, start, pc, &last);
    cli_unload(&loaded);
    return CLI_OK;
}

static const struct cli_usage usage = {
    .run = run_dump,
    .option_set = CLI_OPT_ALL | CLI_OPT_SMALL | CLI_OPT_FILL | CLI_OPT_DEBUG_FILES,
    .operands_min = 1,
    .operands_max = 1,
    .help = "Usage: qutc dump [--all] TABLE|ELF\n\n"
            "Prints START-END RULE for each row, addresses as in the file. A rule gives the canonical frame address, "
            "the return\n"
            "address, the frame pointer, and what else is not the same in the caller; [X] is the word at address X.\n\n"
            "Example: qutc dump libc.qut | head\n",
};
const struct cli_command command_dump = {"dump", "print all rows", cli_run, &usage};
