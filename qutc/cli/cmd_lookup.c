// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cli/load_table.h"
#include "qutc/table/rule_text.h"

static bool parse_address(const char *text, uint64_t *address)
{
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    size_t length = strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
    if (length == 0 || digits[length] != '\0')
        return false;
    errno = 0;
    *address = strtoull(digits, NULL, is_hex ? 16 : 10);
    return errno == 0;
}

static int look_up(const struct cli_loaded *loaded, const char *text)
{
    uint64_t address;
    if (!parse_address(text, &address)) {
        cli_report(stderr, text, "not an address: 0x... or decimal");
        return CLI_BAD;
    }
    struct qut_rule rule;
    char line[TABLE_RULE_TEXT_BYTES];
    runtime_table_rule(&loaded->file.table, address, &rule);
    printf("%s %s\n", text, table_rule_text(loaded->arch, &rule, line));
    return rule.kind == QUT_RULE_FRAME ? CLI_OK : CLI_NO;
}

static int worse(int left, int right)
{
    return left > right ? left : right;
}

static int look_up_stdin(const struct cli_loaded *loaded)
{
    char *line = NULL;
    size_t capacity = 0;
    int status = CLI_OK;
    while (status != CLI_BAD && getline(&line, &capacity, stdin) >= 0) {
        char *rest = NULL;
        for (char *word = strtok_r(line, " \t\r\n", &rest); word && status != CLI_BAD;
             word = strtok_r(NULL, " \t\r\n", &rest))
            status = worse(status, look_up(loaded, word));
    }
    if (status != CLI_BAD && !feof(stdin)) {
        cli_report(stderr, "standard input", "cannot read: %s", strerror(errno));
        status = CLI_BAD;
    }
    free(line);
    return status;
}

// Before anything is printed: half an answer is none.
static bool addresses_are_sound(const struct cli_options *options)
{
    for (int i = 1; i < options->operand_count; i++) {
        uint64_t address;
        if (strcmp(options->operands[i], "-") == 0 || parse_address(options->operands[i], &address))
            continue;
        cli_report(stderr, options->operands[i], "not an address: 0x... or decimal");
        return false;
    }
    return true;
}

static int run_lookup(const struct cli_options *options)
{
    struct cli_loaded loaded;
    if (!addresses_are_sound(options))
        return CLI_BAD;
    int status = cli_load_operand(options, options->operands[0], &loaded);
    if (status != CLI_OK)
        return status;
    for (int i = 1; i < options->operand_count && status != CLI_BAD; i++) {
        bool from_stdin = strcmp(options->operands[i], "-") == 0;
        status = worse(status, from_stdin ? look_up_stdin(&loaded) : look_up(&loaded, options->operands[i]));
    }
    cli_unload(&loaded);
    return status;
}

static const struct cli_usage usage = {
    .run = run_lookup,
    .option_set = CLI_OPT_SMALL | CLI_OPT_FILL | CLI_OPT_DEBUG_FILES,
    .operands_min = 2,
    .operands_max = -1,
    .help = "Usage: qutc lookup TABLE|ELF ADDR...|-\n\n"
            "Prints ADDR RULE for each address, 0x... or decimal, as in the file; - reads them from standard input. "
            "Exit status 1\n"
            "if any has no frame rule.\n\n"
            "Example: qutc lookup libc.qut 0x26ad0\n",
};
const struct cli_command command_lookup = {"lookup", "print the rule at addresses", cli_run, &usage};
