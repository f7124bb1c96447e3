// SPDX-License-Identifier: Apache-2.0
// A signal handler that makes traced calls.
#ifndef TESTS_UNIT_AGENT_CALLS_HANDLED_H
#define TESTS_UNIT_AGENT_CALLS_HANDLED_H

#include "tests/unit/agent/calls/account.h"

TRACED static void handled(int depth)
{
    tell(HANDLED);
    if (depth > 0)
        handled(depth - 1);
}

static void handler(int signal_number)
{
    (void)signal_number;
    handled(3);
    sink += leaf(2);
}

#endif
