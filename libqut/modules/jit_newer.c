// SPDX-License-Identifier: Apache-2.0
// What Android's runtime has added to its list since that was read. Each of its changes adds 2 to the list's number: so
// where the entries before the one that was first are as many as the changes, nothing was removed, and what is new
// covers what they cover. The first walk that meets a change follows it, and leaves what it found to all others.
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_confirm.h"
#include "libqut/os/os.h"

#define ON_ITS_OWN __attribute__((noinline))

enum {
    FOLLOWED_MAX = 4, // entries, in one walk
    SECTIONS_MAX = 16,
};

struct native_descriptor {
    uint32_t version, action;
    uintptr_t relevant, first;
    char magic[8];
    uint32_t flags, descriptor_bytes, entry_bytes, seqlock;
    uint64_t timestamp;
};
static_assert(sizeof(struct native_descriptor) <= MODULES_JIT_DESCRIPTOR_BYTES, "all of it was kept");
// What is behind changes with the number.
enum { DESCRIPTOR_BYTES = offsetof(struct native_descriptor, timestamp) };

// As in a section header of this process's class.
struct native_section {
    uintptr_t flags, address, offset, size;
};
static_assert(offsetof(ElfW(Shdr), sh_size) - offsetof(ElfW(Shdr), sh_flags) == 3 * sizeof(uintptr_t),
              "these fields of a section header lie side by side");

// Of an ELF header what is behind its first bytes: more of it, for which there is no stack, would say no more.
struct native_header {
    uint16_t type, machine;
    uint32_t version;
    uintptr_t entry, segments, sections;
    uint32_t flags;
    uint16_t header_bytes, segment_bytes, segment_count, section_bytes, section_count, name_section;
};
static_assert(sizeof(struct native_header) == sizeof(ElfW(Ehdr)) - EI_NIDENT, "the rest of it");

// A walk that follows a change: in one piece, since there is little stack.
struct change {
    const struct modules_jit_source *source;
    uintptr_t first;
    uint32_t seqlock;
    uint32_t count; // of changes since the list was read; MODULES_JIT_LOST: it cannot be told
    // An entry that came with them.
    uintptr_t entry, next, symfile; // symfile 0: it has none
    union {
        // As they are read, one after the other.
        _Alignas(struct native_descriptor) uint8_t descriptor[DESCRIPTOR_BYTES];
        struct modules_jit_native_entry read;
        struct native_header header;
        struct {
            uintptr_t start, end; // one range around all of its code; empty: it has none
            // What is left to be read of its file.
            uintptr_t sections;
            uint32_t section_count;
        };
    };
};

// ---- one entry, and what its file covers

// `links` from the first on; all have to be newer than the list that was read.
ON_ITS_OWN static bool read_entry(struct change *change, unsigned links)
{
    struct modules_jit_native_entry *now = &change->read;
    change->next = change->first;
    do {
        change->entry = change->next;
        const struct os_part part = {change->entry, modules_jit_native_entry_bytes(change->source->descriptor.layout)};
        if (change->entry == 0 || os_read_parts(&part, 1, now) != part.size ||
            now->timestamp <= change->source->descriptor.timestamp)
            return false;
        change->next = (uintptr_t)arch_pointer(&arch_native_arch, now->next);
    } while (links--);
    change->symfile = now->symfile_bytes ? (uintptr_t)arch_pointer(&arch_native_arch, now->symfile) : 0;
    bool is_whole = change->source->descriptor.layout != ART_JIT_ANDROID2 || !(now->seqlock & 1);
    change->start = change->end = 0;
    return is_whole;
}

ON_ITS_OWN static bool read_header(struct change *change)
{
    const struct native_header *header = &change->header;
    const struct os_part part = {change->symfile + EI_NIDENT, sizeof *header};
    if (os_read_parts(&part, 1, &change->header) != sizeof *header || header->version != EV_CURRENT ||
        header->header_bytes != sizeof(ElfW(Ehdr)) || header->section_bytes != sizeof(ElfW(Shdr)))
        return false;
    uint32_t section_count = header->section_count;
    change->sections = change->symfile + header->sections;
    change->section_count = section_count;
    change->start = change->end = 0;
    return section_count <= SECTIONS_MAX;
}

static void widen(struct change *change, const struct native_section *section)
{
    if (!(section->flags & SHF_EXECINSTR) || section->size == 0)
        return;
    uintptr_t end = section->address + section->size;
    bool is_first = change->end == 0;
    change->start = is_first || section->address < change->start ? section->address : change->start;
    change->end = is_first || end > change->end ? end : change->end;
}

// One at a time: for two there is no stack.
ON_ITS_OWN static bool read_section(struct change *change)
{
    struct native_section section;
    const struct os_part part = {change->sections + offsetof(ElfW(Shdr), sh_flags), sizeof section};
    if (os_read_parts(&part, 1, &section) != sizeof section)
        return false;
    widen(change, &section);
    change->sections += sizeof(ElfW(Shdr));
    change->section_count--;
    return true;
}

// ---- following

static uintptr_t number_of(const struct modules_jit_source *source)
{
    return (uintptr_t)source->descriptor.address + offsetof(struct native_descriptor, seqlock);
}

// Who follows the same change stores the same: nobody waits for anybody, and what is there is never changed.
static void leave_to_others(const struct change *change, uint32_t at)
{
    struct modules_jit_newer *newer = change->source->newer;
    struct modules_jit_newer_item *item = &newer->items[at];
    atomic_store_explicit(&item->entry, change->entry, memory_order_relaxed);
    atomic_store_explicit(&item->start, change->start, memory_order_relaxed);
    atomic_store_explicit(&item->end, change->end, memory_order_relaxed);
    // Release: who finds the count finds the item.
    uint32_t count = at;
    atomic_compare_exchange_strong_explicit(&newer->count, &count, at + 1, memory_order_release, memory_order_relaxed);
}

static uintptr_t newest_known(const struct modules_jit_source *source, uint32_t known)
{
    return known ? atomic_load_explicit(&source->newer->items[known - 1].entry, memory_order_relaxed)
                 : (uintptr_t)source->descriptor.first_entry;
}

static bool read_file(struct change *change)
{
    if (change->symfile == 0)
        return true;
    bool is_read = read_header(change);
    while (is_read && change->section_count)
        is_read = read_section(change);
    return is_read;
}

// The oldest first, though it costs a way along the list for each: there is no room for all of them.
ON_ITS_OWN static bool follow(struct change *change, uint32_t known)
{
    for (uint32_t at = known; at < change->count; at++) {
        if (!read_entry(change, change->count - 1 - at) ||
            (at == known && change->next != newest_known(change->source, known)) || !read_file(change) ||
            !os_is_word(number_of(change->source), change->seqlock))
            return false;
        leave_to_others(change, at);
    }
    return true;
}

ON_ITS_OWN static void read_change(struct change *change)
{
    const struct modules_jit_source *source = change->source;
    const struct native_descriptor *now = (const void *)change->descriptor;
    const struct os_part part = {(uintptr_t)source->descriptor.address, DESCRIPTOR_BYTES};
    change->count = MODULES_JIT_LOST;
    if (!source->is_complete || os_read_parts(&part, 1, change->descriptor) != DESCRIPTOR_BYTES)
        return;
    bool is_same = source->byte_count == sizeof *now && memcmp(now, source->bytes, DESCRIPTOR_BYTES) == 0;
    change->seqlock = now->seqlock;
    change->first = (uintptr_t)arch_pointer(&arch_native_arch, now->first);
    uint32_t count = (now->seqlock - source->descriptor.seqlock) / 2;
    // Whatever else has changed has changed the number, too.
    bool is_counted = !((now->seqlock | source->descriptor.seqlock) & 1) && count && count <= MODULES_JIT_NEWER_MAX;
    change->count = is_same ? 0 : is_counted ? count : (uint32_t)MODULES_JIT_LOST;
}

// Whether the list's number is what it was when somebody looked last: nearly always.
static bool is_as_known(const struct modules_jit_source *source, uint32_t known)
{
    uint32_t seqlock = source->descriptor.seqlock;
    return source->is_complete && source->byte_count && !(seqlock & 1) &&
           os_is_word(number_of(source), seqlock + 2 * known);
}

// How many of the newer entries count; MODULES_JIT_LOST: it cannot be told.
static inline uint32_t ask(const struct modules_jit_source *source)
{
    struct change change;
    uint32_t known = atomic_load_explicit(&source->newer->count, memory_order_acquire);
    if (is_as_known(source, known))
        return known;
    change.source = source;
    read_change(&change);
    if (change.count == 0 || change.count == MODULES_JIT_LOST)
        return change.count;
    bool is_known = change.count <= known || (change.count - known <= FOLLOWED_MAX && follow(&change, known));
    return is_known ? change.count : (uint32_t)MODULES_JIT_LOST;
}

ON_ITS_OWN static bool is_beside_newer(const struct modules_jit_source *source, uintptr_t pc,
                                       const struct modules_jit_asked *asked)
{
    if (asked->newer == MODULES_JIT_LOST)
        return false;
    for (uint32_t i = 0; i < asked->newer; i++) {
        const struct modules_jit_newer_item *item = &source->newer->items[i];
        if (pc >= atomic_load_explicit(&item->start, memory_order_relaxed) &&
            pc < atomic_load_explicit(&item->end, memory_order_relaxed))
            return false;
    }
    return true;
}

ON_ITS_OWN static bool ask_first(const struct modules_jit_source *source, uintptr_t pc, struct modules_jit_asked *asked)
{
    asked->newer = ask(source);
    asked->source_number = source->number;
    if (asked->newer != 0)
        modules_jit_want(MODULES_JIT_WANT);
    return is_beside_newer(source, pc, asked);
}

// What stands on the stack is not freed: so one answer counts for all frames of a walk.
bool modules_jit_list_holds(const struct modules_jit_source *source, uintptr_t pc, struct modules_jit_asked *asked)
{
    return asked->source_number != source->number ? ask_first(source, pc, asked) : is_beside_newer(source, pc, asked);
}
