// SPDX-License-Identifier: Apache-2.0
// Colours, sparingly: heads of tables, and what is bad. On a terminal only, and not where NO_COLOR or TERM=dumb says no
// (https://no-color.org).
#ifndef CLI_STYLE_H
#define CLI_STYLE_H

#include <stdio.h>

// What a terminal is told before and behind a text; "" elsewhere.
const char *cli_style_head(FILE *stream);
const char *cli_style_bad(FILE *stream);
const char *cli_style_end(FILE *stream);

#endif
