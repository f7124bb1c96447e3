// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/diagnostics.h"

static void print_usage(const struct cli_program *program, FILE *stream)
{
    fprintf(stream, "Usage: %s COMMAND ...\n\n%s\n\n", cli_program, program->about);
    for (const struct cli_command *const *command = program->commands; *command; command++)
        fprintf(stream, "  %-8s %s\n", (*command)->name, (*command)->summary);
    fprintf(stream, "\n%s COMMAND --help says more; %s --version says which this is.\n\nExample: %s\n", cli_program,
            cli_program, program->example);
}

static int dispatch(const struct cli_program *program, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_usage(program, stderr);
        return CLI_BAD;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(program, stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("%s %s\n", cli_program, QUT_VERSION);
        return CLI_OK;
    }
    for (const struct cli_command *const *command = program->commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return (*command)->run(*command, argc - 1, argv + 1);
    cli_report(stderr, name, "not a command; see %s --help", cli_program);
    return CLI_BAD;
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
