// SPDX-License-Identifier: Apache-2.0
// glibc gives each new thread an arena of its own to allocate from, and never gives its memory back. So that nothing
// stays behind, ours is told to use the main one, as a thread does that the program started when there were enough.
#ifndef TRACER_INJECT_ARENA_H
#define TRACER_INJECT_ARENA_H

#include "tracer/inject/target_program.h"

// Where threads keep the address of their arena, relative to their thread pointer, and the main arena's. Found by what
// an arena looks like, in a thread that has allocated. False: not found for certain.
bool inject_arena_find(const struct inject_program *program, uint64_t thread_pointer, uint64_t *offset,
                       uint64_t *arena);

#endif
