// SPDX-License-Identifier: Apache-2.0
#include "cli/style.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_colours(FILE *stream)
{
    const char *forbidden = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(forbidden && *forbidden) && terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(stream)) == 1;
}

const char *cli_style_head(FILE *stream)
{
    return has_colours(stream) ? "\033[1m" : "";
}

const char *cli_style_bad(FILE *stream)
{
    return has_colours(stream) ? "\033[31m" : "";
}

const char *cli_style_end(FILE *stream)
{
    return has_colours(stream) ? "\033[0m" : "";
}
