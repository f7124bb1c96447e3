// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

// How many characters a line of the terminal has room for: one less than it has columns, since some begin a new line in
// the last one. 0: the stream is no terminal.
unsigned cli_terminal_columns(FILE *stream);

#endif
