// SPDX-License-Identifier: Apache-2.0
// `qut stack`: a stack per thread.
#ifndef TRACER_STACK_H
#define TRACER_STACK_H

// argv[0] is "stack". Returns the exit status.
int stack_command(int argc, char **argv);

#endif
