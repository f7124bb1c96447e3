// SPDX-License-Identifier: Apache-2.0
// What stands behind the list of jit.h: the descriptors, and every entry that was met in their lists. Changed under
// work by one step at a time, which prepares what is new beside it and puts it in place under lock: so a child after
// fork finds it whole.
#ifndef QUT_MODULES_JIT_REGISTRY_H
#define QUT_MODULES_JIT_REGISTRY_H

#include "libqut/modules/jit_confirm.h"
#include "libqut/modules/registry.h"

enum {
    MODULES_JIT_RANGES_MAX = 8,               // sections of code in a symbol file
    MODULES_JIT_TRIES_MAX = 8,                // to make the table of one that is not complete
    MODULES_JIT_WAITING_BYTES_MAX = 256 << 20 // copies of symbol files without table
};

enum modules_jit_state {
    MODULES_JIT_WAITS, // for its table
    MODULES_JIT_EARLY, // ... until the file is read again, since it was registered before it was complete
    MODULES_JIT_READY,
    MODULES_JIT_NOT_ELF,  // Erlang's, for one
    MODULES_JIT_NOT_READ, // too large, or no memory of ours
    MODULES_JIT_NO_TABLE, // the compiler made none
    MODULES_JIT_STATES,
};

// One entry, from the moment it is met until no walk can look at its table any more.
struct modules_jit_blob {
    struct modules_retired retired; // its way out
    struct modules_jit_code code;
    enum modules_jit_state state;
    uint32_t rank;  // in its list
    uint32_t tries; // of the same entry, that came too early
    struct qut_table table;
    void *table_bytes;
    uint8_t *symfile; // while it waits
    size_t symfile_bytes;
    // What it answers for. READY: its table's rows; else its code: an older table shall not answer for that.
    struct art_jit_range *ranges;
    size_t range_count;
};

struct modules_jit_list_state {
    uint64_t address; // of the descriptor
    bool is_art;      // of Android's runtime
    struct modules_jit_source source;
    enum art_jit_fault fault;
    struct modules_jit_blob **blobs; // ascending by their entries' addresses
    size_t blob_count;
};

struct modules_jit_registry {
    _Atomic uint32_t wanted;      // enum modules_jit_want: the lists are due to be read
    _Atomic uint32_t begun, done; // readings of the lists: how many have begun, and the last that has ended

    // ---- under lock
    struct modules_jit_list_state *lists;
    size_t list_count;
    struct modules_jit_published *published;
    struct modules_jit_blob **waiting; // the newest first
    size_t waiting_next, waiting_count;
    size_t waiting_bytes;
    struct modules_retired *gone; // from their lists, but not from what is published
    bool is_unpublished;
    uint64_t due_ns; // nothing is done before, unless a thread waits for it
    uint32_t fault_streak;
    uint64_t publish_ns; // what the last one took
};

extern struct modules_jit_registry modules_jit;
extern const struct elf_art_memory modules_jit_own_memory;

// ---- jit_blob.c

// A new entry: its symbol file is copied. NULL and *fault: ART_JIT_NO_MEMORY, or ART_JIT_BUSY: the entry is gone.
struct modules_jit_blob *modules_jit_blob_new(const struct art_jit_descriptor *descriptor,
                                              const struct art_jit_entry *entry, enum art_jit_fault *fault);
// Whether the entry still stands for the same symbol file.
bool modules_jit_blob_is(const struct modules_jit_blob *blob, const struct art_jit_entry *entry, bool doubted);
// Its table. What it makes is put in place by modules_jit_blob_settle, under lock.
struct modules_jit_made {
    enum modules_jit_state state;
    struct qut_table table;
    void *table_bytes;
    struct art_jit_range *ranges;
    size_t range_count;
};
void modules_jit_blob_make(const struct modules_jit_blob *blob, struct modules_jit_made *made);
void modules_jit_blob_settle(struct modules_jit_blob *blob, const struct modules_jit_made *made, uint8_t frame_flags);
void modules_jit_blob_free(struct modules_jit_blob *blob);

// ---- jit_index.c

// A new list of intervals, in place of the old one. False: no memory. Under work, without lock.
bool modules_jit_publish(void);
void modules_jit_unpublish(void); // under lock

// ---- jit_lists.c

// Which descriptors there are, after a scan. False: no memory. Under work, without lock.
bool modules_jit_take_records(void);
// Nothing is known any more. Under work and lock.
void modules_jit_drop(void);
// Of the entries known now. Under lock.
void modules_jit_fill_stats(struct qut_stats *stats);
// The entry is none of its list any more. It is freed when no walk can look at it. Under lock.
void modules_jit_let_go(struct modules_jit_blob *blob);

// ---- jit_refresh.c

// What is due, a short while of it. False: nothing is. *wait_ms: until something will be due; -1: nothing will. Under
// work, without lock.
bool modules_jit_step(int *wait_ms);
// All that was registered before the call. Under work, without lock.
void modules_jit_refresh(void);
void modules_jit_after_fork(void); // in the child, under lock

#endif
