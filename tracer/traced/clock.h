// SPDX-License-Identifier: Apache-2.0
// The clock of the events, as the traced process's processor has it.
#ifndef TRACER_TRACED_CLOCK_H
#define TRACER_TRACED_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

// Whether calls can be traced on this machine at all.
bool traced_is_possible(void);
uint64_t traced_ticks(void);
// A duration by it. Takes a few milliseconds to find out.
uint64_t traced_ticks_of(uint64_t ns);

#endif
