// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/report.h"

static void print_usage(const struct cli_commands *commands, FILE *stream)
{
    fprintf(stream, "Usage: %s COMMAND ...\n\n%s\n\n", cli_program, commands->about);
    for (unsigned i = 0; i < commands->count; i++)
        fprintf(stream, "  %-8s %s\n", commands->listed[i].name, commands->listed[i].summary);
    fprintf(stream, "\n%s COMMAND --help says more; %s --version says which this is.\n\nExample: %s\n", cli_program,
            cli_program, commands->example);
}

static int dispatch(const struct cli_commands *commands, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_usage(commands, stderr);
        return CLI_BAD;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(commands, stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("%s %s\n", cli_program, QUT_VERSION);
        return CLI_OK;
    }
    for (unsigned i = 0; i < commands->count; i++)
        if (strcmp(commands->listed[i].name, name) == 0)
            return commands->run(i, argc - 1, argv + 1);
    cli_report(stderr, name, "not a command; see %s --help", cli_program);
    return CLI_BAD;
}

int cli_main(const struct cli_commands *commands, int argc, char **argv)
{
    // A parent may have left it ignored; nobody reads on after `COMMAND | head`.
    signal(SIGPIPE, SIG_DFL);
    int status = dispatch(commands, argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_report(stderr, "standard output", "cannot write: %s", errno ? strerror(errno) : "earlier write failed");
    return CLI_BAD;
}
