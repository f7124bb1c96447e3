// SPDX-License-Identifier: Apache-2.0
// The golden trace as a segment:   golden_maker PATH close|leave
#include <stdio.h>
#include <string.h>

#include "tests/support/golden/golden.h"
#include "tests/support/golden/segment.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct trace trace;
    golden_trace(&trace);
    int status = golden_write(&trace, argv[1], strcmp(argv[2], "close") == 0);
    golden_free(&trace);
    if (status != 0)
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-status));
    return status == 0 ? 0 : 1;
}
