// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/report.h"
#include "tracer/collect_command.h"
#include "tracer/export_command.h"
#include "tracer/info_command.h"
#include "tracer/record_command.h"
#include "tracer/report_command.h"
#include "tracer/stack.h"

const char cli_program[] = "qut";

static const struct cli_listed listed[] = {
    {"record", "sample a command, or a process that runs, to a trace"},
    {"stack", "print the stacks of a process, a core file, a snapshot"},
    {"collect", "take the samples of a process that traces itself to a file"},
    {"info", "say what is in a trace: losses, counts, threads, sizes"},
    {"export", "write a trace in a format that other programs read"},
    {"report", "write a trace as one HTML page: timeline, flame graph, losses"},
};

static int run(unsigned index, int argc, char **argv)
{
    static int (*const commands[])(int, char **) = {record_command, stack_command,  collect_command,
                                                    info_command,   export_command, report_command};
    return commands[index](argc, argv);
}

int main(int argc, char **argv)
{
    const struct cli_commands commands = {.about = "Where programs are, and where they were.",
                                          .example = "qut record -- sort -n numbers.txt",
                                          .listed = listed,
                                          .count = sizeof listed / sizeof *listed,
                                          .run = run};
    return cli_main(&commands, argc, argv);
}
