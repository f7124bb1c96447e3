// SPDX-License-Identifier: Apache-2.0
// Whether what was read of a compiler's list still holds for a pc on this thread's stack. What stands on the stack is
// not freed: its entry was there before this walk began and is there now. So it is enough to look once, and whatever
// changes meanwhile is none of our business.
//
// Walks have little stack, and what reads memory safely takes its share: so these read few bytes at a time, and each is
// a function of its own.
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_confirm.h"
#include "libqut/os/os.h"

#define ON_ITS_OWN __attribute__((noinline))

enum {
    NEWER_ENTRIES_MAX = 16,
    SECTIONS_MAX = 16,
    MAGIC_OFFSET = 8 + 2 * sizeof(uintptr_t),
    SEQLOCK_OFFSET = MAGIC_OFFSET + 20, // of the descriptor
    FIRST_OFFSET = MAGIC_OFFSET - sizeof(uintptr_t),
};

// An entry as it lies in this process's memory. In GDB's layout the last two are not there, in Android's first the
// last.
struct native_entry {
    uintptr_t next, previous, symfile;
    uint64_t symfile_bytes, timestamp;
    uint32_t seqlock;
};
static_assert(offsetof(ElfW(Shdr), sh_size) - offsetof(ElfW(Shdr), sh_flags) == 3 * sizeof(uintptr_t),
              "these fields of a section header lie side by side");

static inline bool read(uint64_t address, void *bytes, size_t size)
{
    return os_read_self((uintptr_t)address, bytes, size) == size;
}

static inline size_t entry_bytes(enum art_jit_layout layout)
{
    return layout == ART_JIT_GDB        ? offsetof(struct native_entry, timestamp)
           : layout == ART_JIT_ANDROID1 ? offsetof(struct native_entry, seqlock)
                                        : offsetof(struct native_entry, seqlock) + sizeof(uint32_t);
}

// One part's. 64 bytes with each system call, since there is no room for more.
ON_ITS_OWN static bool hash_part(const uint8_t *copy, uint64_t address, uint32_t size, uint64_t *hash)
{
    enum { CHUNK_BYTES = 64 };
    uint64_t words[CHUNK_BYTES / sizeof(uint64_t)];
    // All of it, or evenly spread.
    uint32_t step_bytes =
        size <= MODULES_JIT_PART_BYTES_MAX ? CHUNK_BYTES : size / (MODULES_JIT_PART_BYTES_MAX / CHUNK_BYTES);
    for (uint32_t at = 0; at < size; at += step_bytes) {
        uint32_t count = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        words[(count - 1) / sizeof *words] = 0;
        if (copy)
            memcpy(words, copy + at, count);
        else if (!read(address + at, words, count))
            return false;
        for (uint32_t i = 0; i * sizeof *words < count; i++) {
            uint64_t sum = (*hash ^ words[i]) * 0x9e3779b97f4a7c15u;
            *hash = sum ^ sum >> 29;
        }
    }
    return true;
}

bool modules_jit_hash(const struct modules_jit_code *code, const uint8_t *copy, uint64_t *hash)
{
    *hash = code->entry.symfile_bytes;
    for (unsigned i = 0; i < MODULES_JIT_PARTS_MAX; i++) {
        uint32_t offset = code->parts[i].offset;
        if (!hash_part(copy ? copy + offset : NULL, code->entry.symfile_address + offset, code->parts[i].size, hash))
            return false;
    }
    return true;
}

ON_ITS_OWN static bool is_unchanged(const struct modules_jit_source *source)
{
    uint8_t now[MODULES_JIT_DESCRIPTOR_BYTES];
    return source->byte_count != 0 && read(source->descriptor.address, now, source->byte_count) &&
           memcmp(now, source->bytes, source->byte_count) == 0;
}

// Where entries are freed, one is the one that was read if it is still linked: a removal changes that first.
ON_ITS_OWN static bool entry_holds(const struct modules_jit_source *source, const struct art_jit_entry *entry)
{
    enum art_jit_layout layout = source->descriptor.layout;
    struct native_entry now;
    if (!read(entry->address, &now, entry_bytes(layout)) ||
        arch_pointer(&arch_native_arch, now.symfile) != entry->symfile_address ||
        now.symfile_bytes != entry->symfile_bytes)
        return false;
    if (layout != ART_JIT_GDB && now.timestamp != entry->timestamp)
        return false;
    if (layout == ART_JIT_ANDROID2)
        return now.seqlock == entry->seqlock;
    uint64_t link =
        now.previous ? arch_pointer(&arch_native_arch, now.previous) : source->descriptor.address + FIRST_OFFSET;
    return read(link, &now.next, sizeof now.next) && arch_pointer(&arch_native_arch, now.next) == entry->address;
}

ON_ITS_OWN static bool file_holds(const struct modules_jit_code *code)
{
    uint64_t hash;
    return modules_jit_hash(code, NULL, &hash) && hash == code->hash;
}

// ---- what has come since

ON_ITS_OWN static bool section_has(uint64_t address, uintptr_t pc)
{
    struct {
        uintptr_t flags, address, offset, size; // as in a section header of this process's class
    } now;
    if (!read(address, &now, sizeof now))
        return true;
    return (now.flags & SHF_EXECINSTR) && pc - now.address < now.size;
}

// Where it cannot be told: true.
ON_ITS_OWN static bool file_may_have(uint64_t symfile, uintptr_t pc)
{
    ElfW(Off) sections;
    uint16_t sizes[2]; // of an entry, and how many there are
    uint32_t magic;
    if (!read(symfile, &magic, sizeof magic) || memcmp(&magic, ELFMAG, sizeof magic) != 0 ||
        !read(symfile + offsetof(ElfW(Ehdr), e_shoff), &sections, sizeof sections) ||
        !read(symfile + offsetof(ElfW(Ehdr), e_shentsize), sizes, sizeof sizes) || sizes[1] > SECTIONS_MAX)
        return true;
    uint64_t at = symfile + sections + offsetof(ElfW(Shdr), sh_flags);
    for (unsigned i = 0; i < sizes[1]; i++, at += sizes[0])
        if (section_has(at, pc))
            return true;
    return false;
}

// The next entry, and its file; 0 where the entry is as old as the list that was read.
ON_ITS_OWN static bool next_newer(const struct modules_jit_source *source, uint64_t *link, uint64_t *symfile)
{
    struct native_entry now;
    if (!read(*link, &now.next, sizeof now.next))
        return false;
    uint64_t address = arch_pointer(&arch_native_arch, now.next);
    *symfile = *link = 0;
    if (address == 0)
        return true;
    if (!read(address, &now, entry_bytes(source->descriptor.layout)))
        return false;
    if (now.timestamp > source->descriptor.timestamp) {
        *link = address; // where its `next` lies
        *symfile = arch_pointer(&arch_native_arch, now.symfile);
    }
    return true;
}

ON_ITS_OWN static bool read_seqlock(const struct modules_jit_source *source, uint32_t *seqlock)
{
    return read(source->descriptor.address + SEQLOCK_OFFSET, seqlock, sizeof *seqlock) && !(*seqlock & 1);
}

// Android's lists have the newest first, with the time at which it came. The entry that was known is still there; but
// from Android 11 on entries stay for a while after their code has gone, and a newer one may have its place.
ON_ITS_OWN static bool has_nothing_newer(const struct modules_jit_source *source, uintptr_t pc)
{
    uint32_t seqlock, seqlock_after;
    uint64_t link = source->descriptor.address + FIRST_OFFSET, symfile;
    if (!source->is_complete || !read_seqlock(source, &seqlock))
        return false;
    for (unsigned i = 0; link; i++) {
        if (i == NEWER_ENTRIES_MAX || !next_newer(source, &link, &symfile) || (symfile && file_may_have(symfile, pc)))
            return false;
    }
    return read_seqlock(source, &seqlock_after) && seqlock_after == seqlock;
}

// ----

bool modules_jit_code_holds(const struct modules_jit_source *source, const struct modules_jit_code *code, uintptr_t pc)
{
    // Nothing but the entry and its file says that GDB's list is what it was.
    if (source->descriptor.layout == ART_JIT_GDB)
        return entry_holds(source, &code->entry) && file_holds(code);
    return is_unchanged(source) || (entry_holds(source, &code->entry) && has_nothing_newer(source, pc));
}

// A list of GDB's can look as it did and be another one: its first entry tells some of these.
bool modules_jit_source_is_stale(const struct modules_jit_source *source)
{
    return !is_unchanged(source) || (source->first.address != 0 && !entry_holds(source, &source->first));
}
