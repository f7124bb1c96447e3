// SPDX-License-Identifier: Apache-2.0
// The command `qutc compile` from outside: its memory, and a whole directory.
#ifndef BENCH_COMPILE_COMPILE_COMMAND_H
#define BENCH_COMPILE_COMPILE_COMMAND_H

#include "base/error.h"

// Peak memory of compiling each file, less that of a run that does nothing, against input + 3 x table. Prints a line
// and a verdict for each. `scratch` is a directory that may be written to.
int bench_compile_memory(const char *qutc, const char *scratch, char **paths, int count, struct base_error *error);

// All of a directory, with two processes, `rounds` times.
int bench_compile_tree(const char *qutc, const char *scratch, const char *tree, unsigned rounds,
                       struct base_error *error);

#endif
