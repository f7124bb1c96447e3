// SPDX-License-Identifier: Apache-2.0
// The qutc command: finds the command asked for, and answers for standard output at the end.
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "qutc/cli/options.h"

static const unsigned compile_options = CLI_OPT_OUTPUT | CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_QUIET | CLI_OPT_JSON |
                                        CLI_OPT_FORCE | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES;
static const unsigned stat_options =
    CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES;
static const unsigned verify_options = CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM |
                                       CLI_OPT_DEBUG_FILES | CLI_OPT_AGAINST | CLI_OPT_TABLE;

static const struct cli_command commands[] = {
    {"compile", cli_compile, compile_options, 1, -1, "make tables",
     "Usage: qutc compile [-o FILE|DIR] [-j N] [--small] INPUT...\n\n"
     "Makes the table of each INPUT: an ELF or OAT file, an APK, a directory (searched to its leaves), --pid, "
     "--system.\n"
     "One table goes to FILE, several go to DIR as NAME-IDENTITY.qut. Without -o they go to the cache ($QUT_CACHE, "
     "else\n"
     "$XDG_CACHE_HOME/qut, else ~/.cache/qut), where tables that are there already stay.\n\n"
     "Example: qutc compile -o libc.qut /lib/x86_64-linux-gnu/libc.so.6\n"},
    {"dump", cli_dump, CLI_OPT_ALL | CLI_OPT_SMALL | CLI_OPT_DEBUG_FILES, 1, 1, "print all rows",
     "Usage: qutc dump [--all] TABLE|ELF\n\n"
     "Prints START-END RULE for each row, addresses as in the file. A rule gives the canonical frame address, the "
     "return\n"
     "address, the frame pointer, and what else is not the same in the caller; [X] is the word at address X.\n\n"
     "Example: qutc dump libc.qut | head\n"},
    {"lookup", cli_lookup, CLI_OPT_SMALL | CLI_OPT_DEBUG_FILES, 2, -1, "print the rule at addresses",
     "Usage: qutc lookup TABLE|ELF ADDR...|-\n\n"
     "Prints ADDR RULE for each address, 0x... or decimal, as in the file; - reads them from standard input. Exit "
     "status 1\n"
     "if any has no frame rule.\n\n"
     "Example: qutc lookup libc.qut 0x26ad0\n"},
    {"stat", cli_stat, stat_options, 1, -1, "print sizes, coverage, refusals",
     "Usage: qutc stat [--json] TABLE|ELF...\n\n"
     "Prints rows, distinct rules, bytes, their share of the tables they replace, coverage of the text, and refusals "
     "by\n"
     "reason.\n\n"
     "Example: qutc stat --json libc.qut\n"},
    {"verify", cli_verify, verify_options, 1, -1, "compare every row with independent readers",
     "Usage: qutc verify [--against READER] [--json] [--table FILE] ELF...\n\n"
     "Compiles each ELF and compares every row with what libdw, libdwarf and readelf make of the file. The last line "
     "of\n"
     "each is FILE: rows=N exact=N refused=N wrong=N. Exit status 1 if any row is wrong.\n\n"
     "Example: qutc verify /bin/bash\n"},
    {"pack", cli_pack, CLI_OPT_OUTPUT | CLI_OPT_QUIET, 1, -1, "put tables into one bundle",
     "Usage: qutc pack -o BUNDLE TABLE...|DIR\n\n"
     "Puts tables, or all *.qut files of a directory, into one compressed file.\n\n"
     "Example: qutc pack -o system.qutz ~/.cache/qut\n"},
    {"unpack", cli_unpack, CLI_OPT_OUTPUT | CLI_OPT_QUIET, 1, -1, "take tables out of a bundle",
     "Usage: qutc unpack [-o DIR] BUNDLE [NAME...]\n\n"
     "Writes the tables with these names, or all, to DIR (default: here).\n\n"
     "Example: qutc unpack -o tables system.qutz\n"},
    {"list", cli_list, CLI_OPT_JSON, 0, 1, "say which tables a bundle or the cache has",
     "Usage: qutc list [BUNDLE|DIR]\n\n"
     "Prints name, architecture, text bytes, rows, table bytes and identity of each table (default: of the cache).\n\n"
     "Example: qutc list system.qutz\n"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_usage(FILE *stream)
{
    fputs("Usage: qutc COMMAND ...\n\nStack-unwinding tables, compiled ahead of time.\n\n", stream);
    for (unsigned i = 0; i < COMMAND_COUNT; i++)
        fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("\nqutc COMMAND --help says more; qutc --version says which this is.\n\n"
          "Example: qutc compile -o bash.qut /bin/bash && qutc stat bash.qut\n",
          stream);
}

static int dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_usage(stderr);
        return CLI_BAD;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        puts("qutc " QUT_VERSION);
        return CLI_OK;
    }
    for (unsigned i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return cli_run(&commands[i], argc - 1, argv + 1);
    cli_report(stderr, name, "not a command; see qutc --help");
    return CLI_BAD;
}

int main(int argc, char **argv)
{
    // A parent may have left it ignored; nobody reads on after `qutc dump ... | head`.
    signal(SIGPIPE, SIG_DFL);
    int status = dispatch(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_report(stderr, "standard output", "cannot write: %s", errno ? strerror(errno) : "earlier write failed");
    return CLI_BAD;
}
