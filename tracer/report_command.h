// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_REPORT_COMMAND_H
#define TRACER_REPORT_COMMAND_H

// qut report; argv[0] is "report". Returns an exit status.
int report_command(int argc, char **argv);

#endif
