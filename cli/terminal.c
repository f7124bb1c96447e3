// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

unsigned cli_terminal_columns(FILE *stream)
{
    struct winsize size;
    enum { USUAL = 80, LEAST = 20 };
    int fd = fileno(stream);
    if (fd < 0 || !isatty(fd))
        return 0;
    return (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST ? size.ws_col : USUAL) - 1u;
}
