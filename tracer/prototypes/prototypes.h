// SPDX-License-Identifier: Apache-2.0
// What functions are declared as, by the debug information of their file: their arguments' names and types, and where
// those are when the function is entered. Of x86-64's files, in C and C++; of others nothing is said.
//
// Debug information comes from untrusted files. Of a file the heads of its units are read once, and then the functions
// of the unit that is asked for, and of types what a path leads through. Blocks, allocates; one thread at a time.
#ifndef TRACER_PROTOTYPES_PROTOTYPES_H
#define TRACER_PROTOTYPES_PROTOTYPES_H

#include "base/error.h"
#include "tracer/probe/resolve.h"

struct prototypes; // of one file

// Whether this build can tell anything: it needs libdw (-Dinlines).
bool prototypes_built(void);

// debug_root: "/usr/lib/debug", for what is in a debug file of its own; NULL: no other file is looked for. NULL, with
// *error filled: the file cannot be read, or has no debug information, or is of another architecture.
struct prototypes *prototypes_open(const char *path, const char *debug_root, struct base_error *error);
void prototypes_close(struct prototypes *prototypes);

// "write(int fd, const void *buf, size_t n) -> ssize_t"; malloc's. NULL, with *error filled: nothing is known of a
// function that begins there. name: how it is called; NULL: as debug information calls it.
char *prototypes_text(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name, struct base_error *error);

// What a path means in the function that begins there, as struct probe_resolver says. name: the symbol's, which tells
// whether a compiler has changed its arguments; NULL: not known.
int prototypes_resolve(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name,
                       const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why);

#endif
