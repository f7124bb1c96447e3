// SPDX-License-Identifier: Apache-2.0
// Parameters of a script: $1 to $9, or ${1:-text}, which is that text where the parameter is not given. They stand for
// what is put in their place before the script is compiled, in quotes as well; not in comments. Allocates.
#ifndef TRACER_PROBE_PARAMETERS_H
#define TRACER_PROBE_PARAMETERS_H

#include "tracer/probe/script.h"

enum { PROBE_PARAMETERS_MAX = 9 };

// The script with its parameters, malloc's, and its length. NULL: *diagnostic says what and where: one is missing, or
// one is given that it does not have.
char *probe_parameters_put(const char *text, size_t length, const char *const *values, size_t count, size_t *put_length,
                           struct probe_diagnostic *diagnostic);

#endif
