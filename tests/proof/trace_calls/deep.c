// SPDX-License-Identifier: Apache-2.0
// Calls that lie in each other, and in the innermost one nothing but work, until it is killed: what samples are judged
// by. usage: DEEP DEPTH. Says its pid from there.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

static volatile unsigned sink;

static TRACED void traced_busy(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        sink++;
}

static TRACED unsigned traced_deep(unsigned depth)
{
    if (depth > 1)
        return traced_deep(depth - 1) + sink;
    traced_busy();
    return sink;
}

int main(int argc, char **argv)
{
    return (int)(traced_deep(argc > 1 ? (unsigned)atoi(argv[1]) : 10) + sink);
}
