// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/modules/jit/owner.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

void owner_load(struct owner *owner, enum art_jit_layout layout)
{
    static const char *const paths[] = {JIT_LIBRARIES};
    *owner = (struct owner){.layout = layout};
    library = dlopen(paths[layout], RTLD_NOW | RTLD_LOCAL);
    owner->descriptor = library ? dlsym(library, "__jit_debug_descriptor") : NULL;
    if (!owner->descriptor)
        printf("%s: %s\n", paths[layout], dlerror());
}

void owner_unload(struct owner *owner)
{
    owner_clear(owner);
    dlclose(library);
}

// Handlers read the list between any two of these stores.
static void put_link(struct jit_entry **link, struct jit_entry *entry)
{
    __atomic_store_n(link, entry, __ATOMIC_SEQ_CST);
}

static void begin(struct owner *owner)
{
    if (owner->layout != ART_JIT_GDB)
        __atomic_fetch_add(&owner->descriptor->seqlock, 1, __ATOMIC_SEQ_CST);
}

static void end(struct owner *owner, struct jit_entry *entry, uint32_t action)
{
    struct jit_descriptor *descriptor = owner->descriptor;
    descriptor->action = action;
    put_link(&descriptor->relevant, entry);
    if (owner->layout == ART_JIT_GDB)
        return;
    descriptor->timestamp = owner->timestamp;
    __atomic_fetch_add(&descriptor->seqlock, 1, __ATOMIC_SEQ_CST);
}

// All that were not freed: those of a list that was cleared, and was perhaps a circle, are not lost.
struct kept {
    struct jit_entry entry;
    struct kept *older, *newer;
};
static struct kept *kept;

static struct jit_entry *allocate(void)
{
    struct kept *made = calloc(1, sizeof *made);
    made->older = kept;
    if (kept)
        kept->newer = made;
    kept = made;
    return &made->entry;
}

static void release(struct jit_entry *entry)
{
    struct kept *gone = (struct kept *)entry;
    if (gone->older)
        gone->older->newer = gone->newer;
    if (gone->newer)
        gone->newer->older = gone->older;
    else
        kept = gone->older;
    free(gone);
}

static struct jit_entry *new_entry(struct owner *owner)
{
    struct jit_entry *entry = owner->layout == ART_JIT_ANDROID2 ? owner->free : NULL;
    if (entry)
        owner->free = entry->next;
    else
        entry = allocate();
    if (!(entry->seqlock & 1) && owner->layout == ART_JIT_ANDROID2)
        entry->seqlock = 1;
    return entry;
}

struct jit_entry *owner_add(struct owner *owner, const void *symfile, size_t size)
{
    struct jit_entry *entry = new_entry(owner), *first = owner->descriptor->first;
    begin(owner);
    entry->symfile = symfile;
    entry->symfile_bytes = size;
    put_link(&entry->next, first);
    put_link(&entry->previous, NULL);
    owner->timestamp++;
    if (owner->layout != ART_JIT_GDB)
        entry->timestamp = owner->timestamp;
    if (owner->layout == ART_JIT_ANDROID2)
        __atomic_fetch_add(&entry->seqlock, 1, __ATOMIC_SEQ_CST);
    if (first)
        put_link(&first->previous, entry);
    put_link(&owner->descriptor->first, entry);
    end(owner, entry, 1);
    return entry;
}

void owner_remove(struct owner *owner, struct jit_entry *entry)
{
    begin(owner);
    put_link(entry->previous ? &entry->previous->next : &owner->descriptor->first, entry->next);
    if (entry->next)
        put_link(&entry->next->previous, entry->previous);
    owner->timestamp++;
    if (owner->layout == ART_JIT_ANDROID2) {
        __atomic_fetch_add(&entry->seqlock, 1, __ATOMIC_SEQ_CST);
        put_link(&entry->next, owner->free);
        owner->free = entry;
    }
    end(owner, entry, 2);
    if (owner->layout != ART_JIT_ANDROID2)
        release(entry);
}

void owner_clear(struct owner *owner)
{
    struct jit_descriptor *descriptor = owner->descriptor;
    descriptor->version = 1;
    if (owner->layout != ART_JIT_GDB)
        descriptor->seqlock = (descriptor->seqlock + 2) & ~1u;
    put_link(&descriptor->first, NULL);
}
