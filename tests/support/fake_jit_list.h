// SPDX-License-Identifier: Apache-2.0
// A JIT's list in a memory of our own, in any layout and for any architecture: what a writer does to it, step by step,
// and whatever can go wrong while it is read.
#ifndef TESTS_SUPPORT_FAKE_JIT_LIST_H
#define TESTS_SUPPORT_FAKE_JIT_LIST_H

#include <string.h>

#include "libqut/art/jit_list.h"

enum {
    FAKE_BASE = 0x70000,
    FAKE_BYTES = 0x4000,
    FAKE_DESCRIPTOR = FAKE_BASE + 0x100,
    FAKE_ENTRIES = FAKE_BASE + 0xfc0, // one of them lies across two pages
    FAKE_ENTRY_STRIDE = 64,
    FAKE_SYMFILES = FAKE_BASE + 0x2000,
    FAKE_SYMFILE_STRIDE = 64,
};

struct fake_list {
    struct elf_art_memory memory;
    enum art_jit_layout layout;
    uint8_t bytes[FAKE_BYTES];
    uint64_t hole; // an address that cannot be read; 0: none
    size_t read_count;
    size_t byte_count;
    // Called before each read, which may change the list.
    void (*before_read)(struct fake_list *list, size_t read);
    void *data;
};

static inline size_t fake_read(void *context, uint64_t address, void *bytes, size_t size)
{
    struct fake_list *list = context;
    if (list->before_read)
        list->before_read(list, list->read_count);
    list->read_count++;
    if (address < FAKE_BASE || address >= FAKE_BASE + FAKE_BYTES)
        return 0;
    size_t at = (size_t)(address - FAKE_BASE), rest = FAKE_BYTES - at, count = size < rest ? size : rest;
    if (list->hole >= address && list->hole < address + count)
        count = (size_t)(list->hole - address);
    memcpy(bytes, list->bytes + at, count);
    list->byte_count += count;
    return count;
}

static inline void fake_put(struct fake_list *list, uint64_t address, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        list->bytes[address - FAKE_BASE + i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t fake_get(const struct fake_list *list, uint64_t address, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)list->bytes[address - FAKE_BASE + i] << 8 * i;
    return value;
}

// ---- where fields lie, written down once more

static inline size_t fake_word(const struct fake_list *list)
{
    return list->memory.arch->word_bytes;
}

enum fake_field { FAKE_NEXT, FAKE_PREVIOUS, FAKE_ADDRESS, FAKE_SIZE, FAKE_TIME, FAKE_SEQLOCK, FAKE_FIELDS };

static inline unsigned fake_offset(const struct fake_list *list, enum fake_field field)
{
    static const unsigned of_64[FAKE_FIELDS] = {0, 8, 16, 24, 32, 40}, of_32[FAKE_FIELDS] = {0, 4, 8, 16, 24, 32},
                          of_i386[FAKE_FIELDS] = {0, 4, 8, 12, 20, 28};
    return fake_word(list) == 8 ? of_64[field] : list->memory.arch->id == QUT_ARCH_X86 ? of_i386[field] : of_32[field];
}

static inline uint64_t fake_entry_at(unsigned index)
{
    return FAKE_ENTRIES + (uint64_t)index * FAKE_ENTRY_STRIDE;
}

static inline uint64_t fake_symfile_at(unsigned index)
{
    return FAKE_SYMFILES + (uint64_t)index * FAKE_SYMFILE_STRIDE;
}

static inline void fake_set(struct fake_list *list, uint64_t entry, enum fake_field field, uint64_t value)
{
    size_t size = field == FAKE_SEQLOCK ? 4 : field == FAKE_SIZE || field == FAKE_TIME ? 8 : fake_word(list);
    if (field < FAKE_TIME || list->layout == ART_JIT_ANDROID2 || (field == FAKE_TIME && list->layout != ART_JIT_GDB))
        fake_put(list, entry + fake_offset(list, field), value, size);
}

static inline uint64_t fake_field(const struct fake_list *list, uint64_t entry, enum fake_field field)
{
    size_t size = field == FAKE_SEQLOCK ? 4 : field == FAKE_SIZE || field == FAKE_TIME ? 8 : fake_word(list);
    return fake_get(list, entry + fake_offset(list, field), size);
}

static inline uint64_t fake_first_link(const struct fake_list *list)
{
    return FAKE_DESCRIPTOR + 8 + fake_word(list);
}

static inline uint64_t fake_extension(const struct fake_list *list)
{
    return FAKE_DESCRIPTOR + 8 + 2 * fake_word(list);
}

// ---- what writers do

static inline void fake_add_to_seqlock(struct fake_list *list, uint64_t address)
{
    fake_put(list, address, fake_get(list, address, 4) + 1, 4);
}

static inline void fake_change_begins(struct fake_list *list)
{
    if (list->layout != ART_JIT_GDB)
        fake_add_to_seqlock(list, fake_extension(list) + 20);
}

static inline void fake_change_ends(struct fake_list *list, uint64_t entry, unsigned action)
{
    fake_put(list, FAKE_DESCRIPTOR + 4, action, 4);
    fake_put(list, FAKE_DESCRIPTOR + 8, entry, fake_word(list));
    if (list->layout == ART_JIT_GDB)
        return;
    uint64_t timestamp = fake_extension(list) + 24;
    fake_put(list, timestamp, fake_get(list, timestamp, 8) + 1, 8);
    fake_add_to_seqlock(list, fake_extension(list) + 20);
}

static inline void fake_init(struct fake_list *list, const struct arch *arch, enum art_jit_layout layout)
{
    memset(list, 0, sizeof *list);
    list->memory = (struct elf_art_memory){.read = fake_read, .context = list, .arch = arch};
    list->layout = layout;
    fake_put(list, FAKE_DESCRIPTOR, 1, 4);
    if (layout == ART_JIT_GDB)
        return;
    static const unsigned entry_bytes[2][3] = {{40, 32, 28}, {48, 40, 32}};
    unsigned form = fake_word(list) == 8 ? 0 : arch->id == QUT_ARCH_X86 ? 2 : 1;
    uint64_t at = fake_extension(list);
    memcpy(list->bytes + (at - FAKE_BASE), layout == ART_JIT_ANDROID1 ? "Android1" : "Android2", 8);
    fake_put(list, at + 12, form == 0 ? 56 : 48, 4);
    fake_put(list, at + 16, entry_bytes[layout == ART_JIT_ANDROID2][form], 4);
    for (unsigned i = 0; layout == ART_JIT_ANDROID2 && i < 64; i++)
        fake_set(list, fake_entry_at(i), FAKE_SEQLOCK, 1);
}

// Entry number `index`, at the list's head.
static inline void fake_add(struct fake_list *list, unsigned index, uint64_t symfile, uint64_t size)
{
    uint64_t entry = fake_entry_at(index), first = fake_get(list, fake_first_link(list), fake_word(list));
    fake_change_begins(list);
    fake_set(list, entry, FAKE_ADDRESS, symfile);
    fake_set(list, entry, FAKE_SIZE, size);
    fake_set(list, entry, FAKE_PREVIOUS, 0);
    fake_set(list, entry, FAKE_NEXT, first);
    fake_set(list, entry, FAKE_TIME, 1000 + index);
    if (list->layout == ART_JIT_ANDROID2)
        fake_add_to_seqlock(list, entry + fake_offset(list, FAKE_SEQLOCK));
    if (first)
        fake_set(list, first, FAKE_PREVIOUS, entry);
    fake_put(list, fake_first_link(list), entry, fake_word(list));
    fake_change_ends(list, entry, 1);
}

static inline void fake_remove(struct fake_list *list, unsigned index)
{
    uint64_t entry = fake_entry_at(index);
    uint64_t next = fake_field(list, entry, FAKE_NEXT), previous = fake_field(list, entry, FAKE_PREVIOUS);
    fake_change_begins(list);
    if (previous)
        fake_set(list, previous, FAKE_NEXT, next);
    else
        fake_put(list, fake_first_link(list), next, fake_word(list));
    if (next)
        fake_set(list, next, FAKE_PREVIOUS, previous);
    if (list->layout == ART_JIT_ANDROID2) {
        fake_add_to_seqlock(list, entry + fake_offset(list, FAKE_SEQLOCK));
        fake_set(list, entry, FAKE_NEXT, fake_entry_at(60)); // the free ones' list
    } else {
        memset(list->bytes + (entry - FAKE_BASE), 0x5a, 32); // freed, and something else by now
    }
    fake_change_ends(list, entry, 2);
}

#endif
