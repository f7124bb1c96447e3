// SPDX-License-Identifier: Apache-2.0
#include <x86intrin.h>

#include "tracer/calls/plan.h"
#include "tracer/traced/clock.h"

bool traced_is_possible(void)
{
    return calls_plan_is_possible();
}

uint64_t traced_ticks(void)
{
    return __rdtsc();
}
