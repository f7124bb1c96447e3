// SPDX-License-Identifier: Apache-2.0
// Parts of functions that compilers put elsewhere, as their symbols say: NAME.cold, NAME.cold.1.
#ifndef TRACER_CALLS_PARTS_H
#define TRACER_CALLS_PARTS_H

#include <stdint.h>

#include "base/error.h"

// `name` is the function's, as in the file, and lives as long as the call. 0, or -1 to end with.
typedef int calls_take_part(void *context, const char *name, uint64_t vaddr, uint32_t size_bytes);

// Those of an ELF file that have a size, by their addresses. 0; -1: *error, or `take` has ended it. Blocks, allocates.
int calls_parts_each(const char *path, calls_take_part *take, void *context, struct base_error *error);

#endif
