// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/diagnostics.h"

// A process prints one form: how --help of the commands it runs is meant.
static enum cli_help_form form = CLI_HELP_TEXT;
static const char *summary_of_command;

const char cli_help_statuses[] =
    "\nExit status: 0 ok; 1 the answer is no, or the result incomplete; 2 bad usage or input.\n";

bool cli_help_takes(const struct cli_parser *parser, const struct cli_argument *argument)
{
    return argument->set == 0 || (argument->set & parser->set);
}

bool cli_help_has_letter(const struct cli_argument *argument)
{
    return argument->id <= UCHAR_MAX;
}

static void print_text(const struct cli_parser *parser)
{
    printf("%s\nOptions:\n", parser->help);
    for (size_t i = 0; i < parser->argument_count; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!cli_help_takes(parser, argument))
            continue;
        char left[40];
        bool has_letter = cli_help_has_letter(argument);
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", has_letter ? '-' : ' ', has_letter ? argument->id : ' ',
                 has_letter ? ", " : "  ", argument->name, argument->value ? " " : "",
                 argument->value ? argument->value : "");
        printf("  %-24s %s\n", left, argument->text);
    }
    fputs(parser->statuses ? parser->statuses : cli_help_statuses, stdout);
}

void cli_help_print(const struct cli_parser *parser)
{
    if (form == CLI_HELP_TEXT)
        print_text(parser);
    else if (form == CLI_HELP_MAN)
        cli_help_man_command(parser, summary_of_command);
    else
        cli_complete_command(form, parser);
}

void cli_help_program_text(const struct cli_program *program, FILE *stream)
{
    fprintf(stream, "Usage: %s COMMAND ...\n\n%s\n\n", cli_program, program->about);
    for (const struct cli_command *const *command = program->commands; *command; command++)
        fprintf(stream, "  %-8s %s\n", (*command)->name, (*command)->summary);
    fprintf(stream, "\n%s COMMAND --help says more; %s --version says which this is.\n\nExample: %s\n", cli_program,
            cli_program, program->example);
}

static int tell(const struct cli_command *command)
{
    char help[] = "--help";
    char *arguments[] = {(char *)(uintptr_t)command->name, help, NULL};
    summary_of_command = command->summary;
    return command->run(command, 2, arguments);
}

static int print_man(const struct cli_program *program, const char *of)
{
    form = CLI_HELP_MAN;
    for (const struct cli_command *const *command = program->commands; *command; command++)
        if (strcmp((*command)->name, of) == 0)
            return tell(*command);
    cli_report(stderr, of, "not a command");
    return CLI_BAD;
}

int cli_help_print_program(const struct cli_program *program, const char *what)
{
    static const char *const shells[CLI_HELP_FORMS] = {
        [CLI_HELP_BASH] = "bash", [CLI_HELP_ZSH] = "zsh", [CLI_HELP_FISH] = "fish"};
    int status = CLI_OK;
    if (strcmp(what, "man") == 0) {
        cli_help_man_program(program);
        return CLI_OK;
    }
    if (strncmp(what, "man-", 4) == 0)
        return print_man(program, what + 4);
    for (form = CLI_HELP_BASH; form < CLI_HELP_FORMS && strcmp(shells[form], what) != 0;)
        form++;
    if (form == CLI_HELP_FORMS) {
        cli_report(stderr, what, "not one of man, man-COMMAND, bash, zsh, fish");
        return CLI_BAD;
    }
    cli_complete_begin(form, program);
    for (const struct cli_command *const *command = program->commands; *command && status == CLI_OK; command++)
        status = tell(*command);
    cli_complete_end(form);
    return status;
}
