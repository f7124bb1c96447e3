// SPDX-License-Identifier: Apache-2.0
// A compiler's side of its list, in the three layouts: what it adds, removes and uses again.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_OWNER_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_OWNER_H

#include <stddef.h>
#include <stdint.h>

#include "libqut/art/jit_list.h"

struct jit_entry {
    struct jit_entry *next, *previous;
    const void *symfile;
    uint64_t symfile_bytes;
    uint64_t timestamp; // Android's
    uint32_t seqlock;   // from Android 11 on
};

enum {
    JIT_ANDROID1_ENTRY_BYTES = offsetof(struct jit_entry, seqlock),
    JIT_ANDROID2_ENTRY_BYTES = sizeof(struct jit_entry),
};

struct jit_gdb_descriptor {
    uint32_t version, action;
    struct jit_entry *relevant, *first;
};

struct jit_descriptor {
    uint32_t version, action;
    struct jit_entry *relevant, *first;
    char magic[8];
    uint32_t flags, descriptor_bytes, entry_bytes, seqlock;
    uint64_t timestamp;
};

struct owner {
    struct jit_descriptor *descriptor; // of GDB's, the first part only
    enum art_jit_layout layout;
    struct jit_entry *free; // Android2: entries are used again, but never freed
    uint64_t timestamp;
};

// With the library of that layout; NULL descriptor: it cannot be loaded.
void owner_load(struct owner *owner, enum art_jit_layout layout);
void owner_unload(struct owner *owner);

struct jit_entry *owner_add(struct owner *owner, const void *symfile, size_t size);
void owner_remove(struct owner *owner, struct jit_entry *entry);
// The list as it was at first, whatever was done to it.
void owner_clear(struct owner *owner);

#endif
