// SPDX-License-Identifier: Apache-2.0
// A file of its own, compiled with -O2: one function ends in a jump to the other.
#include "tests/unit/agent/calls/tail.h"
#include "tests/unit/agent/calls/thunks.h"

TRACED int tail_b(int n)
{
    return n + 2;
}

TRACED int tail_a(int n)
{
    return tail_b(n + 1);
}
