// SPDX-License-Identifier: Apache-2.0
// qut record.
#ifndef TRACER_RECORD_COMMAND_H
#define TRACER_RECORD_COMMAND_H

int record_command(int argc, char **argv);

#endif
