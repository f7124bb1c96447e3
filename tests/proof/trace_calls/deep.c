// SPDX-License-Identifier: Apache-2.0
// Calls that lie in each other, and in the innermost one nothing but calls that work, until it is killed: what samples
// are judged by. usage: DEEP DEPTH. Says its pid from there.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

static volatile unsigned sink;

// Its stack is another one at each look.
static TRACED void traced_work(void)
{
    for (volatile unsigned i = 0; i < 100000; i++)
        sink++;
}

static TRACED void traced_busy(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        traced_work();
}

static TRACED unsigned traced_deep(unsigned depth)
{
    volatile char large[12000]; // all of them are more than what is copied of a second stack
    large[0] = (char)depth;
    if (depth > 1)
        return traced_deep(depth - 1) + (unsigned)large[0];
    traced_busy();
    return sink;
}

int main(int argc, char **argv)
{
    return (int)(traced_deep(argc > 1 ? (unsigned)atoi(argv[1]) : 10) + sink);
}
