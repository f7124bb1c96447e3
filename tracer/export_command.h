// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_EXPORT_COMMAND_H
#define TRACER_EXPORT_COMMAND_H

// qut export. Returns an exit status.
int export_command(int argc, char **argv);

#endif
