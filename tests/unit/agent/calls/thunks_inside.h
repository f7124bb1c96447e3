// SPDX-License-Identifier: Apache-2.0
// What thunks.c and what writes code for one machine share.
#ifndef TESTS_UNIT_AGENT_CALLS_THUNKS_INSIDE_H
#define TESTS_UNIT_AGENT_CALLS_THUNKS_INSIDE_H

#include "tests/unit/agent/calls/thunks.h"

#ifndef THUNKS_GUARDED // PROT_BTI: indirect branches have to land on marks
#define THUNKS_GUARDED 0
#endif
enum { THUNKS_PATCH_BYTES_MAX = 8, THUNKS_BLOCK_BYTES = 65536 };

uintptr_t thunks_block(void);
uint8_t *thunks_next(void); // where the next thunk stands
void thunks_used(uint8_t *end);
// Until thunks_undo.
bool thunks_exchange(uint8_t *at, const uint8_t *bytes, size_t size);

#endif
