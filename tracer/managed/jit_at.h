// SPDX-License-Identifier: Apache-2.0
// Names of code that a just-in-time compiler made and registered (__jit_debug_descriptor), for one who asks later than
// the code ran. Code is freed, and other code put in its place: so what is registered is remembered from one look to
// the next, and a name is told where nothing else can have been there at that time.
#ifndef TRACER_MANAGED_JIT_AT_H
#define TRACER_MANAGED_JIT_AT_H

#include "base/vector.h"
#include "libqut/art/jit_list.h"

enum {
    MANAGED_JIT_LISTS_MAX = 4,
    MANAGED_JIT_GONE_MAX = 4096, // entries that were removed and are remembered
};

struct managed_jit_file; // one that is registered, or was

struct managed_jit_list {
    uint64_t descriptor_address;
    struct art_jit_descriptor descriptor;
    bool is_read;
    bool is_current;    // it is asked
    uint64_t unsure_ns; // up to here something may have been registered and removed unseen; 0: nothing ever
    BASE_VECTOR(struct managed_jit_file *) files;
    BASE_VECTOR(struct managed_jit_file *) gone; // as they were found to be gone
};

struct managed_jit {
    struct managed_jit_list lists[MANAGED_JIT_LISTS_MAX];
    unsigned list_count;
    uint64_t bytes; // of all files
    bool no_memory;
};

struct managed_jit_name {
    uint64_t start, end; // of the code
    const char *text;    // until the next call
    size_t length;
};

// A list to look at: those that are known stay, and are asked again. A process may become another program, whose lists
// are elsewhere, if it has any: so each time all are dropped, and those added that it has now.
void managed_jit_drop_lists(struct managed_jit *jit);
void managed_jit_add_list(struct managed_jit *jit, uint64_t descriptor_address);

// The code that was at an address at some moment between since_ns (CLOCK_MONOTONIC, the clock of Android's timestamps)
// and now. False: nothing is registered there, or it may have been other code.
bool managed_jit_at(struct managed_jit *jit, const struct elf_art_memory *memory, uint64_t address, uint64_t since_ns,
                    struct managed_jit_name *name);

void managed_jit_free(struct managed_jit *jit);

#endif
