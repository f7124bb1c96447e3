// SPDX-License-Identifier: Apache-2.0
// The commands.
#ifndef QUTC_CLI_CLI_H
#define QUTC_CLI_CLI_H

#include "cli/report.h"

struct cli_options;

// Each returns an enum cli_status.
int cli_compile(const struct cli_options *options);
int cli_dump(const struct cli_options *options);
int cli_lookup(const struct cli_options *options);
int cli_stat(const struct cli_options *options);
int cli_verify(const struct cli_options *options);
int cli_pack(const struct cli_options *options);
int cli_unpack(const struct cli_options *options);
int cli_warm_up(const struct cli_options *options);
int cli_list(const struct cli_options *options);

#endif
