// SPDX-License-Identifier: Apache-2.0
// The whole list. First it is read as if it did not change, and the descriptor says afterwards whether that was so.
// Android's newest layout has locks in the entries too: where the list never rests, they are followed one by one.
#include <stdlib.h>

#include "libqut/art/jit_layout.h"

enum {
    QUICK_TRIES = 16,
    QUICK_TRIES_BEFORE_LOCKS = 3, // of a layout that has locks in its entries
    CAREFUL_TRIES = 16,
    WINDOW_BYTES = 4096, // entries often lie side by side: one read brings many of them
};

struct reader {
    const struct elf_art_memory *memory;
    struct art_jit_list *list;
    size_t capacity;
    size_t step_count;
    uint64_t mark; // an entry passed before: meeting it again is a circle
    size_t mark_step;
    uint64_t window_start;
    size_t window_size;
    uint8_t window[WINDOW_BYTES];
};

static void rewind_list(struct reader *reader)
{
    reader->list->count = reader->step_count = reader->mark_step = 0;
    reader->mark = 0;
    reader->window_size = 0;
}

static enum art_jit_fault add(struct reader *reader, const struct art_jit_entry *entry)
{
    struct art_jit_list *list = reader->list;
    bool is_sentinel = entry->symfile_address == 0 || entry->symfile_bytes == 0;
    if (is_sentinel || entry->seqlock & 1)
        return ART_JIT_FINE;
    if (list->count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 64;
        struct art_jit_entry *entries = realloc(list->entries, capacity * sizeof *entries);
        if (!entries)
            return ART_JIT_NO_MEMORY;
        list->entries = entries;
        reader->capacity = capacity;
    }
    list->entries[list->count++] = *entry;
    return ART_JIT_FINE;
}

// One step further, to that address: bounded, whatever the links say. The mark is moved up at each power of two.
static enum art_jit_fault pass(struct reader *reader, uint64_t address)
{
    if (address == reader->mark)
        return ART_JIT_CYCLE;
    if (++reader->step_count > ART_JIT_ENTRIES_MAX)
        return ART_JIT_TOO_MANY;
    if (reader->step_count >= reader->mark_step * 2) {
        reader->mark = address;
        reader->mark_step = reader->step_count;
    }
    return ART_JIT_FINE;
}

// ---- the quick way

static bool entry_from_window(struct reader *reader, uint64_t address, struct art_jit_entry *entry)
{
    const struct art_jit_descriptor *descriptor = &reader->list->descriptor;
    const struct arch *arch = reader->memory->arch;
    size_t size = art_jit_entry_bytes(arch, descriptor->layout);
    if (address - reader->window_start >= reader->window_size ||
        reader->window_size - (address - reader->window_start) < size) {
        reader->window_start = address & ~(uint64_t)(WINDOW_BYTES - 1);
        reader->window_size =
            reader->memory->read(reader->memory->context, reader->window_start, reader->window, WINDOW_BYTES);
        // It goes on in the next page, or its page can only be read in part.
        if (reader->window_size < size || address - reader->window_start > reader->window_size - size)
            return art_jit_read_entry(reader->memory, descriptor, address, entry);
    }
    art_jit_parse_entry(arch, descriptor->layout, address, reader->window + (address - reader->window_start), entry);
    return true;
}

static enum art_jit_fault read_quickly(struct reader *reader)
{
    rewind_list(reader);
    for (uint64_t at = reader->list->descriptor.first_entry; at != 0;) {
        struct art_jit_entry entry;
        enum art_jit_fault fault = pass(reader, at);
        if (fault == ART_JIT_FINE)
            fault = entry_from_window(reader, at, &entry) ? add(reader, &entry) : ART_JIT_UNREADABLE;
        if (fault != ART_JIT_FINE)
            return fault;
        at = entry.next;
    }
    return ART_JIT_FINE;
}

// ---- the careful way
//
// An entry's fields are what they were if its lock is even and the same before and after. It was in the list if the one
// before it led to it before and after. A link leads to a valid entry; one that stays odd is passed over.

static enum art_jit_fault read_carefully(struct reader *reader)
{
    const struct elf_art_memory *memory = reader->memory;
    const struct art_jit_descriptor *descriptor = &reader->list->descriptor;
    rewind_list(reader);
    struct art_jit_entry entry, before = {0};
    for (uint64_t at = descriptor->first_entry; at != 0; at = entry.next) {
        enum art_jit_fault fault = pass(reader, at);
        if (fault != ART_JIT_FINE)
            return fault;
        if (!art_jit_read_entry(memory, descriptor, at, &entry))
            return ART_JIT_UNREADABLE;
        struct art_jit_entry again = {0};
        if (before.address == 0) {
            struct art_jit_descriptor now;
            if (art_jit_read_descriptor(memory, descriptor->address, &now) != ART_JIT_FINE || now.first_entry != at)
                return ART_JIT_BUSY;
        } else if (!art_jit_read_entry(memory, descriptor, before.address, &again)) {
            return ART_JIT_UNREADABLE;
        } else if (again.seqlock != before.seqlock || again.next != at) {
            return ART_JIT_BUSY;
        }
        if (before.address && (fault = add(reader, &before)) != ART_JIT_FINE)
            return fault;
        before = entry;
    }
    if (before.address == 0)
        return ART_JIT_FINE;
    struct art_jit_entry again;
    if (!art_jit_read_entry(memory, descriptor, before.address, &again))
        return ART_JIT_UNREADABLE;
    return again.seqlock == before.seqlock && again.next == 0 ? add(reader, &before) : ART_JIT_BUSY;
}

// ---- a list with a bad link

struct met {
    uint64_t address;
    size_t order;
};

static int by_address(const void *a, const void *b)
{
    const struct met *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

// A circle was gone round before it was noticed. False: no memory.
static bool keep_each_once(struct art_jit_list *list)
{
    struct met *met = malloc((list->count ? list->count : 1) * sizeof *met);
    if (!met)
        return false;
    for (size_t i = 0; i < list->count; i++)
        met[i] = (struct met){list->entries[i].address, i};
    if (list->count)
        qsort(met, list->count, sizeof *met, by_address);
    for (size_t i = 1; i < list->count; i++)
        if (met[i].address == met[i - 1].address)
            list->entries[met[i].order].address = 0;
    free(met);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].address)
            list->entries[kept++] = list->entries[i];
    list->count = kept;
    return true;
}

static void drop(struct art_jit_list *list)
{
    free(list->entries);
    list->entries = NULL;
    list->count = 0;
}

// ----

enum art_jit_fault art_jit_list_read(const struct elf_art_memory *memory, uint64_t descriptor_address,
                                     struct art_jit_list *list)
{
    *list = (struct art_jit_list){0};
    enum art_jit_fault fault = art_jit_read_descriptor(memory, descriptor_address, &list->descriptor);
    struct reader *reader = fault == ART_JIT_FINE ? malloc(sizeof *reader) : NULL;
    if (!reader)
        return fault == ART_JIT_FINE ? ART_JIT_NO_MEMORY : fault;
    *reader = (struct reader){.memory = memory, .list = list};
    bool has_locks = list->descriptor.layout == ART_JIT_ANDROID2;
    unsigned quick_tries = has_locks ? QUICK_TRIES_BEFORE_LOCKS : QUICK_TRIES;
    unsigned tries = has_locks ? quick_tries + CAREFUL_TRIES : quick_tries;
    bool has_stood_still = false;
    for (unsigned try = 0; try < tries; try++) {
        if (try > 0) {
            fault = art_jit_read_descriptor(memory, descriptor_address, &list->descriptor);
            if (fault != ART_JIT_FINE)
                break;
        }
        // What is wrong with a list that changed meanwhile may be wrong with no list.
        if (try < quick_tries) {
            bool is_locked = list->descriptor.seqlock & 1 && !memory->never_changes;
            enum art_jit_fault found = is_locked ? ART_JIT_BUSY : read_quickly(reader);
            has_stood_still = art_jit_is_unchanged(memory, &list->descriptor);
            fault = has_stood_still ? found : ART_JIT_BUSY;
        } else {
            fault = read_carefully(reader);
            has_stood_still = false;
        }
        bool is_final = fault == ART_JIT_FINE || fault == ART_JIT_NO_MEMORY || fault == ART_JIT_TOO_MANY ||
                        (fault != ART_JIT_BUSY && try < quick_tries);
        if (is_final)
            break;
    }
    free(reader);
    bool is_bad_link = fault == ART_JIT_UNREADABLE || fault == ART_JIT_CYCLE || fault == ART_JIT_TOO_MANY;
    if (fault != ART_JIT_FINE && !(is_bad_link && has_stood_still && keep_each_once(list)))
        drop(list);
    return fault;
}

void art_jit_list_free(struct art_jit_list *list)
{
    free(list->entries);
    *list = (struct art_jit_list){0};
}
