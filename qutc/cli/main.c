// SPDX-License-Identifier: Apache-2.0
// The qutc command.
#include "cli/commands.h"
#include "qutc/cli/options.h"

const char cli_program[] = "qutc";

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
    {"warm-up", cli_warm_up,
     CLI_OPT_OUTPUT | CLI_OPT_SMALL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES |
         CLI_OPT_WARM_UP,
     1, -1, "fill the cache in the background, in order of need",
     "Usage: qutc warm-up [--cpu-share PERCENT] [--memory SIZE] [--budget SIZE] [--max-age DAYS] INPUT...\n\n"
     "Compiles what the cache (-o DIR, else as for compile) does not have: what --pid has mapped comes first, then "
     "libc, ART\n"
     "and its boot images, then the rest of INPUT: files, APKs, directories. Runs with the lowest priority; may be "
     "killed at\n"
     "any moment, and goes on where it stopped. Of two at once in one cache the second leaves, with status 1.\n\n"
     "Example: qutc warm-up --cpu-share 10 --budget 64M --pid 4711 /data/app/com.example\n"},
    {"list", cli_list, CLI_OPT_JSON, 0, 1, "say which tables a bundle or the cache has",
     "Usage: qutc list [BUNDLE|DIR]\n\n"
     "Prints name, architecture, text bytes, rows, table bytes and identity of each table (default: of the cache).\n\n"
     "Example: qutc list system.qutz\n"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static int run(unsigned index, int argc, char **argv)
{
    return cli_run(&commands[index], argc, argv);
}

int main(int argc, char **argv)
{
    struct cli_listed listed[COMMAND_COUNT];
    for (unsigned i = 0; i < COMMAND_COUNT; i++)
        listed[i] = (struct cli_listed){commands[i].name, commands[i].summary};
    const struct cli_commands all = {.about = "Stack-unwinding tables, compiled ahead of time.",
                                     .example = "qutc compile -o bash.qut /bin/bash && qutc stat bash.qut",
                                     .listed = listed,
                                     .count = COMMAND_COUNT,
                                     .run = run};
    return cli_main(&all, argc, argv);
}
