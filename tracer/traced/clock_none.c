// SPDX-License-Identifier: Apache-2.0
// Where no stub is.
#include "tracer/traced/clock.h"

bool traced_is_possible(void)
{
    return false;
}

uint64_t traced_ticks(void)
{
    return 0;
}
