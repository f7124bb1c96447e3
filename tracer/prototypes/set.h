// SPDX-License-Identifier: Apache-2.0
// The functions of a script's patterns, and what `args->x` means in all of them: what the compiler of scripts is given.
// Files are opened when a script asks for an argument of one of their functions, and not before. Blocks, allocates; one
// thread at a time.
#ifndef TRACER_PROTOTYPES_SET_H
#define TRACER_PROTOTYPES_SET_H

#include "tracer/prototypes/prototypes.h"

struct prototypes_set;

// Adds the functions that a pattern fits with prototypes_set_add; asked once for each pattern that a script names
// arguments of. 0, or -1: no memory.
typedef int (*prototypes_find_fn)(void *context, const char *pattern, struct prototypes_set *set);

// NULL: no memory. debug_root as prototypes_open has it.
struct prototypes_set *prototypes_set_new(prototypes_find_fn find, void *context, const char *debug_root);
void prototypes_set_free(struct prototypes_set *set);

// A function that the pattern fits which is asked for. name: as symbols have it. Texts are copied. 0, or -1: no memory.
int prototypes_set_add(struct prototypes_set *set, const char *path, uint64_t entry_vaddr, const char *name);

// For probe_compile_with; lives as long as the set.
struct probe_resolver *prototypes_set_resolver(struct prototypes_set *set);

#endif
