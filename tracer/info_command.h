// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_INFO_COMMAND_H
#define TRACER_INFO_COMMAND_H

// qut info; argv[0] is "info". Returns an exit status.
int info_command(int argc, char **argv);

#endif
