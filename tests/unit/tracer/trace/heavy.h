// SPDX-License-Identifier: Apache-2.0
// QUT_TRACE_HEAVY=N in the environment: N times as much of what is random.
#ifndef TESTS_UNIT_TRACER_TRACE_HEAVY_H
#define TESTS_UNIT_TRACER_TRACE_HEAVY_H

#include <stdlib.h>

static inline unsigned heavy_times(unsigned usual)
{
    const char *text = getenv("QUT_TRACE_HEAVY");
    unsigned long factor = text ? strtoul(text, NULL, 10) : 1;
    return usual * (unsigned)(factor < 1 ? 1 : factor > 1000 ? 1000 : factor);
}

#endif
