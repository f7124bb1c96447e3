// SPDX-License-Identifier: Apache-2.0
// A process that fills a segment: what the commands are tried with. Ends when its standard input does.
//     subject overwrite|stream PATH|- MEBIBYTES STEPS PAUSE_US close|hang
// STEPS samples, a pause after each 1000; "ready" on standard output when they are there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tracer/trace/maker.h"

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    struct maker maker;
    const struct maker_options options = {.mode =
                                              strcmp(argv[1], "stream") == 0 ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE,
                                          .path = strcmp(argv[2], "-") == 0 ? NULL : argv[2],
                                          .segment_bytes = strtoull(argv[3], NULL, 10) << 20,
                                          .seed = 1,
                                          .no_extras = true};
    size_t steps = strtoul(argv[4], NULL, 10);
    unsigned pause_us = (unsigned)strtoul(argv[5], NULL, 10);
    bool closes = strcmp(argv[6], "close") == 0;
    maker_begin(&maker, &options);
    puts("begun");
    fflush(stdout);
    for (size_t done = 0; done < steps; done += 1000) {
        maker_run(&maker, &options, 1000);
        if (pause_us)
            usleep(pause_us);
    }
    if (closes)
        maker_close(&maker);
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    maker_free(&maker);
    return 0;
}
