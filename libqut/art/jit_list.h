// SPDX-License-Identifier: Apache-2.0
// The list of symbol files that just-in-time compilers publish for debuggers, __jit_debug_descriptor: GDB's form of it
// (LLVM, QEMU, Android 8), and Android's two. __dex_debug_descriptor is a list of the same form, whose files are dex
// files. Its owner changes it while we read: whatever is returned here was true of one moment, or is refused.
//
//   descriptor   version, action, relevant entry, first entry; Android: magic, sizes, sequence lock, timestamp
//   entry        next, previous, address and size of the symbol file; Android: timestamp, and from 11 on a sequence
//   lock
#ifndef QUT_ART_JIT_LIST_H
#define QUT_ART_JIT_LIST_H

#include "libqut/elf/image_memory.h"

enum {
    ART_JIT_ENTRIES_MAX = 1 << 20,
    ART_JIT_SYMFILE_BYTES_MAX = 64 << 20,
};

enum art_jit_layout {
    ART_JIT_GDB = 0,  // entries are freed when they are removed, and nothing tells
    ART_JIT_ANDROID1, // 9, 10: one sequence lock and timestamp for the list, timestamps of entries; entries are freed
    ART_JIT_ANDROID2, // from 11 on: a sequence lock in each entry too; entries are used again, but never freed
};

struct art_jit_descriptor {
    uint64_t address;
    enum art_jit_layout layout;
    uint32_t entry_bytes; // as the descriptor says, or the layout
    // What changes when the list does.
    uint32_t action, seqlock;
    uint64_t relevant_entry, first_entry, timestamp;
};

struct art_jit_entry {
    uint64_t address, next, previous;
    uint64_t symfile_address, symfile_bytes; // both 0: a sentinel, as between an app's entries and its zygote's
    uint64_t timestamp;                      // 0: its layout has none
    uint32_t seqlock;                        // even: the entry is valid
};

enum art_jit_fault {
    ART_JIT_FINE = 0,
    ART_JIT_UNREADABLE,  // memory of the list cannot be read
    ART_JIT_BAD_VERSION, // no descriptor that we know
    ART_JIT_BUSY,        // it changed whenever we looked
    ART_JIT_CYCLE,
    ART_JIT_TOO_MANY,
    ART_JIT_TOO_LARGE, // a symbol file
    ART_JIT_NO_MEMORY, // ours
    ART_JIT_FAULT_COUNT,
};
// "the list has a cycle", ... Static text.
const char *art_jit_fault_text(enum art_jit_fault fault);

// Signal-safe, where memory->read is.
enum art_jit_fault art_jit_read_descriptor(const struct elf_art_memory *memory, uint64_t address,
                                           struct art_jit_descriptor *descriptor);
bool art_jit_read_entry(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor,
                        uint64_t address, struct art_jit_entry *entry);
// Whether nothing was added or removed since the descriptor was read, as far as its layout tells.
bool art_jit_is_unchanged(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor);
// Whether the entry at entry->address is still the one that was read, as far as the layout tells.
bool art_jit_entry_holds(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor,
                         const struct art_jit_entry *entry);

// All valid entries but sentinels, as they are listed: the newest first.
struct art_jit_list {
    struct art_jit_descriptor descriptor;
    struct art_jit_entry *entries; // from malloc
    size_t count;
};
// Tries again, a bounded number of times, where the list changes meanwhile. With UNREADABLE, CYCLE and TOO_MANY it has
// what stands before the bad link of a list that did not change meanwhile, each entry once; each may be used, if it
// holds. On other faults it is empty, but for descriptor where that could be read. In memory that never changes, the
// writer may have been at work: what is there counts.
enum art_jit_fault art_jit_list_read(const struct elf_art_memory *memory, uint64_t descriptor_address,
                                     struct art_jit_list *list);
void art_jit_list_free(struct art_jit_list *list);

// A copy of an entry's symbol file, from malloc, that was the entry's before and after it was copied.
enum art_jit_fault art_jit_copy_symfile(const struct elf_art_memory *memory,
                                        const struct art_jit_descriptor *descriptor, const struct art_jit_entry *entry,
                                        uint8_t **bytes, size_t *size);
// LLVM's symbol files are relocatable and not relocated: their sections' bytes are replaced by those at sh_addr, where
// they were loaded. False: no ELF image, or a loaded section cannot be read.
bool art_jit_complete_symfile(const struct elf_art_memory *memory, uint8_t *bytes, size_t size);

// Where a symbol file's code lies: its executable sections. The last range spans what there is no room for. Returns how
// many there are; 0: no ELF image of that architecture, or no code.
struct art_jit_range {
    uint64_t start, end;
};
size_t art_jit_code_ranges(const struct arch *arch, const uint8_t *bytes, size_t size, struct art_jit_range *ranges,
                           size_t capacity);
// Where in the file its unwind information lies, compressed or not: at most `capacity` sections. How many.
size_t art_jit_frame_sections(const struct arch *arch, const uint8_t *bytes, size_t size, struct art_jit_range *ranges,
                              size_t capacity);

#endif
