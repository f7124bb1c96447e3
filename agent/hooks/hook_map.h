// SPDX-License-Identifier: Apache-2.0
#ifndef AGENT_HOOKS_HOOK_MAP_H
#define AGENT_HOOKS_HOOK_MAP_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// A sample that a hook takes of memory that came or went. The hook is its innermost frame; `frames` are between.
void agent_take_memory(uint32_t kind, const void *address, size_t size, uint32_t frames);

#pragma GCC visibility pop

#endif
