// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "cli/help.h"
#include "cli/nearest.h"

struct getopt_table {
    struct option options[CLI_ARGUMENTS_MAX + 1];
    char letters[2 * CLI_ARGUMENTS_MAX + 3];
};

static void make_table(const struct cli_parser *parser, struct getopt_table *table)
{
    char *letter = table->letters;
    struct option *option = table->options;
    if (parser->stop_at_operand)
        *letter++ = '+';
    *letter++ = ':';
    for (size_t i = 0; i < parser->argument_count && i < CLI_ARGUMENTS_MAX; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!cli_help_takes(parser, argument))
            continue;
        *option++ =
            (struct option){argument->name, argument->value ? required_argument : no_argument, NULL, argument->id};
        if (!cli_help_has_letter(argument))
            continue;
        *letter++ = (char)argument->id;
        if (argument->value)
            *letter++ = ':';
    }
    *option = (struct option){0};
    *letter = '\0';
}

bool cli_number(const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

int cli_bad_value(const char *option, const char *value, const char *wanted)
{
    cli_report(stderr, value, "not an argument for --%s: %s", option, wanted);
    return -1;
}

int cli_usage_error(const char *command)
{
    fprintf(stderr, "%s: see %s %s --help\n", cli_program, cli_program, command);
    return CLI_BAD;
}

// As cli_usage_error, with the word that may have been meant, if one is near.
static int usage_error(const struct cli_parser *parser, const char *before, const char *word)
{
    if (!word)
        return cli_usage_error(parser->command);
    fprintf(stderr, "%s: did you mean %s%s? See %s %s --help\n", cli_program, before, word, cli_program,
            parser->command);
    return CLI_BAD;
}

// What getopt_long did not take: a letter it does not know is in optopt, a long name in argv.
static int refuse_option(const struct cli_parser *parser, char **argv, bool lacks_value)
{
    const char *typed = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt <= UCHAR_MAX && typed[1] != '-';
    struct cli_nearest nearest;
    cli_report(stderr, is_letter ? letter : typed, "%s",
               lacks_value ? "needs an argument" : "not an option of this command");
    if (is_letter || lacks_value || strlen(typed) < 2)
        return cli_usage_error(parser->command);
    cli_nearest_begin(&nearest, typed + 2, strcspn(typed + 2, "="));
    for (size_t i = 0; i < parser->argument_count; i++)
        if (cli_help_takes(parser, &parser->arguments[i]))
            cli_nearest_offer(&nearest, parser->arguments[i].name);
    return usage_error(parser, "--", nearest.word);
}

static bool is_word(const struct cli_parser *parser, int id, const char *typed, size_t length)
{
    const char *word;
    for (size_t i = 0; (word = parser->word(id, i)); i++)
        if (strlen(word) == length && strncmp(word, typed, length) == 0)
            return true;
    return false;
}

// What an option did not take, of a list the first part that is no word of its.
static int refuse_value(const struct cli_parser *parser, int id, const char *value)
{
    struct cli_nearest nearest = {.word = NULL};
    if (!value || !parser->word)
        return cli_usage_error(parser->command);
    size_t length = strcspn(value, ",");
    for (; value[length] && is_word(parser, id, value, length); length = strcspn(value, ","))
        value += length + 1;
    cli_nearest_begin(&nearest, value, length);
    const char *word;
    for (size_t i = 0; (word = parser->word(id, i)); i++)
        cli_nearest_offer(&nearest, word);
    return usage_error(parser, "", nearest.word);
}

int cli_parse(const struct cli_parser *parser, int argc, char **argv, int *first)
{
    struct getopt_table table;
    make_table(parser, &table);
    opterr = 0;
    optind = 1;
    for (int id; (id = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1;) {
        if (id == CLI_ID_HELP) {
            cli_help_print(parser);
            return CLI_OK;
        }
        if (id == '?' || id == ':')
            return refuse_option(parser, argv, id == ':');
        if (parser->take(parser->context, id, optarg) != 0)
            return refuse_value(parser, id, optarg);
    }
    *first = optind;
    return CLI_GO_ON;
}
