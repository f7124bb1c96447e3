// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "cli/help.h"
#include "cli/nearest.h"

static int refuse_command(const struct cli_program *program, const char *name)
{
    struct cli_nearest nearest;
    cli_nearest_begin(&nearest, name, strlen(name));
    for (const struct cli_command *const *command = program->commands; *command; command++)
        cli_nearest_offer(&nearest, (*command)->name);
    if (nearest.word)
        cli_report(stderr, name, "not a command; did you mean %s? See %s --help", nearest.word, cli_program);
    else
        cli_report(stderr, name, "not a command; see %s --help", cli_program);
    return CLI_BAD;
}

static int dispatch(const struct cli_program *program, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        cli_help_program_text(program, stderr);
        return CLI_BAD;
    }
    char help[] = "--help", *help_of[] = {argv[0], argc > 2 ? argv[2] : NULL, help, NULL};
    if (strcmp(name, "help") == 0 && argc == 3) { // "help COMMAND": as "COMMAND --help"
        name = argv[2];
        argv = help_of;
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        cli_help_program_text(program, stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("%s %s\n", cli_program, QUT_VERSION);
        return CLI_OK;
    }
    // What the build makes manual pages and completion of.
    if (strcmp(name, "--print") == 0 && argc == 3)
        return cli_help_print_program(program, argv[2]);
    for (const struct cli_command *const *command = program->commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return (*command)->run(*command, argc - 1, argv + 1);
    return refuse_command(program, name);
}

int cli_main(const struct cli_program *program, int argc, char **argv)
{
    // A parent may have left it ignored; nothing is read on after `COMMAND | head`.
    signal(SIGPIPE, SIG_DFL);
    int status = dispatch(program, argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_report(stderr, "standard output", "cannot write: %s", errno ? strerror(errno) : "earlier write failed");
    return CLI_BAD;
}
