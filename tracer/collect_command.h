// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_COLLECT_COMMAND_H
#define TRACER_COLLECT_COMMAND_H

// qut collect; argv[0] is "collect". Returns an exit status.
int collect_command(int argc, char **argv);

#endif
