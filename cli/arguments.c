// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>

#include "cli/diagnostics.h"

struct getopt_table {
    struct option options[CLI_ARGUMENTS_MAX + 1];
    char letters[2 * CLI_ARGUMENTS_MAX + 3];
};

static bool takes(const struct cli_parser *parser, const struct cli_argument *argument)
{
    return argument->set == 0 || (argument->set & parser->set);
}

static void make_table(const struct cli_parser *parser, struct getopt_table *table)
{
    char *letter = table->letters;
    struct option *option = table->options;
    if (parser->stop_at_operand)
        *letter++ = '+';
    *letter++ = ':';
    for (size_t i = 0; i < parser->argument_count && i < CLI_ARGUMENTS_MAX; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!takes(parser, argument))
            continue;
        *option++ =
            (struct option){argument->name, argument->value ? required_argument : no_argument, NULL, argument->id};
        if (argument->id > UCHAR_MAX)
            continue;
        *letter++ = (char)argument->id;
        if (argument->value)
            *letter++ = ':';
    }
    *option = (struct option){0};
    *letter = '\0';
}

static void print_help(const struct cli_parser *parser)
{
    printf("%s\nOptions:\n", parser->help);
    for (size_t i = 0; i < parser->argument_count; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!takes(parser, argument))
            continue;
        char left[40];
        bool has_letter = argument->id <= UCHAR_MAX;
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", has_letter ? '-' : ' ', has_letter ? argument->id : ' ',
                 has_letter ? ", " : "  ", argument->name, argument->value ? " " : "",
                 argument->value ? argument->value : "");
        printf("  %-24s %s\n", left, argument->text);
    }
    fputs(parser->statuses
              ? parser->statuses
              : "\nExit status: 0 ok; 1 the answer is no, or the result incomplete; 2 bad usage or input.\n",
          stdout);
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

// What getopt_long did not take: a letter it does not know is in optopt, a long name in argv.
static int refuse_option(const struct cli_parser *parser, char **argv, bool lacks_value)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt <= UCHAR_MAX && argv[optind - 1][1] != '-';
    cli_report(stderr, is_letter ? letter : argv[optind - 1], "%s",
               lacks_value ? "needs an argument" : "not an option of this command");
    return cli_usage_error(parser->command);
}

int cli_parse(const struct cli_parser *parser, int argc, char **argv, int *first)
{
    struct getopt_table table;
    make_table(parser, &table);
    opterr = 0;
    optind = 1;
    for (int id; (id = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1;) {
        if (id == CLI_ID_HELP) {
            print_help(parser);
            return CLI_OK;
        }
        if (id == '?' || id == ':')
            return refuse_option(parser, argv, id == ':');
        if (parser->take(parser->context, id, optarg) != 0)
            return cli_usage_error(parser->command);
    }
    *first = optind;
    return CLI_GO_ON;
}
