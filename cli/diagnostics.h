// SPDX-License-Identifier: Apache-2.0
// What the commands share: exit statuses, and how a diagnostic reads.
#ifndef CLI_DIAGNOSTICS_H
#define CLI_DIAGNOSTICS_H

#include <stdio.h>

#include "base/error.h"

enum cli_status {
    CLI_OK = 0,
    CLI_NO = 1,  // the answer is "no": a mismatch, an incomplete result
    CLI_BAD = 2, // bad usage or input
};

// "qutc" or "qut": each program defines its own.
extern const char cli_program[];

// "PROGRAM: NAME: what: why" and a newline, as cli_print_name prints it.
void cli_report_error(FILE *stream, const char *name, const struct base_error *error);
void cli_report(FILE *stream, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4), nonnull(3)));

// The name as it is safe on a terminal and in line-based output: what steers either, or is no UTF-8, comes out as "?".
void cli_print_name(FILE *stream, const char *name);

// What follows the last '/'.
const char *cli_basename(const char *path);

#endif
