// SPDX-License-Identifier: Apache-2.0
// What a command line is like, told in several forms, all from the one table of options: --help, the manual page, and
// the scripts by which shells complete it.
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "cli/arguments.h"
#include "cli/commands.h"

enum cli_help_form { CLI_HELP_TEXT, CLI_HELP_MAN, CLI_HELP_BASH, CLI_HELP_ZSH, CLI_HELP_FISH, CLI_HELP_FORMS };

// Which form --help has from now on: the text, unless one was asked for (cli_help_print_program).
void cli_help_print(const struct cli_parser *parser);

// The program as a whole. The commands tell of themselves: each is run with --help.
void cli_help_program_text(const struct cli_program *program, FILE *stream);
// `what`: "man", "man-COMMAND", "bash", "zsh", "fish". Returns an exit status.
int cli_help_print_program(const struct cli_program *program, const char *what);

// ---- for the forms

bool cli_help_takes(const struct cli_parser *parser, const struct cli_argument *argument);
bool cli_help_has_letter(const struct cli_argument *argument);
extern const char cli_help_statuses[]; // what exit statuses commonly mean

void cli_help_man_command(const struct cli_parser *parser, const char *summary);
void cli_help_man_program(const struct cli_program *program);

void cli_complete_begin(enum cli_help_form shell, const struct cli_program *program);
void cli_complete_command(enum cli_help_form shell, const struct cli_parser *parser);
void cli_complete_end(enum cli_help_form shell);

#endif
