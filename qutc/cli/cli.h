// SPDX-License-Identifier: Apache-2.0
// What the parts of the command share: the commands themselves, exit statuses, and how a diagnostic reads.
#ifndef QUTC_CLI_CLI_H
#define QUTC_CLI_CLI_H

#include <stdio.h>

#include "qutc/base/error.h"

enum cli_status {
    CLI_OK = 0,
    CLI_NO = 1,  // the answer is "no": a mismatch, an incomplete result
    CLI_BAD = 2, // bad usage or input
};

struct cli_options;

// Each returns an enum cli_status.
int cli_compile(const struct cli_options *options);
int cli_dump(const struct cli_options *options);
int cli_lookup(const struct cli_options *options);
int cli_stat(const struct cli_options *options);
int cli_verify(const struct cli_options *options);
int cli_pack(const struct cli_options *options);
int cli_unpack(const struct cli_options *options);
int cli_list(const struct cli_options *options);

// "qutc: NAME: what: why" and a newline. Control characters in the name come out as "?".
void cli_report_error(FILE *stream, const char *name, const struct qutc_error *error);
void cli_report(FILE *stream, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The name as it is safe on a terminal and in line-based output.
void cli_print_name(FILE *stream, const char *name);

// What follows the last '/'.
const char *cli_basename(const char *path);

#endif
