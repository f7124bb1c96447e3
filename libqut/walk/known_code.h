// SPDX-License-Identifier: Apache-2.0
// See known_code.c. All of it is signal-safe.
#ifndef QUT_WALK_KNOWN_CODE_H
#define QUT_WALK_KNOWN_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "libqut/arch/arch.h"

#pragma GCC visibility push(hidden)

// Whether a walk has found a call before that return address, and no trampoline at it.
bool walk_is_known_call(uint64_t pc);
void walk_keep_call(uint64_t pc);

// As runtime_walk_ops has them.
bool walk_known_edge(uint64_t pc, const struct arch_frame_edge **edge);
void walk_keep_edge(uint64_t pc, const struct arch_frame_edge *edge);

#pragma GCC visibility pop

#endif
