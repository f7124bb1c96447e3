// SPDX-License-Identifier: Apache-2.0
// Asking a compiler's memory whether an answer of the list in jit.h still counts. Signal-safe.
#ifndef QUT_MODULES_JIT_CONFIRM_H
#define QUT_MODULES_JIT_CONFIRM_H

#include "libqut/modules/jit.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

bool modules_jit_code_holds(const struct modules_jit_source *source, const struct modules_jit_code *code, uintptr_t pc);

// Whether its list has changed since it was read.
bool modules_jit_source_is_stale(const struct modules_jit_source *source);

// The hash of the parts of a symbol file: of a copy, or where that is NULL as it lies in memory now. False: they cannot
// be read.
bool modules_jit_hash(const struct modules_jit_code *code, const uint8_t *copy, uint64_t *hash);

#pragma GCC visibility pop

#endif
