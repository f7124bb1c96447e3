// SPDX-License-Identifier: Apache-2.0
// Whether what was read of a compiler's list in GDB's layout still holds for code on this thread's stack. What stands
// on the stack is not freed: its entry was there before this walk began and is there now. So it is enough to look once,
// and whatever changes meanwhile is none of our business.
//
// Walks have little stack, and what reads memory safely takes its share: so these read few bytes at a time, and each is
// a function of its own.
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_confirm.h"

#define ON_ITS_OWN __attribute__((noinline))

enum {
    FIRST_OFFSET = 8 + sizeof(uintptr_t), // of a descriptor
};

static inline bool read(uint64_t address, void *bytes, size_t size)
{
    return os_read_self((uintptr_t)address, bytes, size) == size;
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

static bool is_entry(const struct modules_jit_native_entry *now, const struct art_jit_entry *entry)
{
    return arch_pointer(&arch_native_arch, now->symfile) == entry->symfile_address &&
           now->symfile_bytes == entry->symfile_bytes;
}

static uint64_t link_to(const struct modules_jit_source *source, uint64_t previous)
{
    return previous ? previous : source->descriptor.address + FIRST_OFFSET;
}

// Entries are freed: one is the one that was read if it is still linked. A removal changes that first.
ON_ITS_OWN static bool link_holds(const struct modules_jit_source *source, const struct art_jit_entry *entry,
                                  uint64_t previous)
{
    uintptr_t link;
    return read(link_to(source, previous), &link, sizeof link) &&
           arch_pointer(&arch_native_arch, link) == entry->address;
}

ON_ITS_OWN static bool entry_holds(const struct modules_jit_source *source, const struct art_jit_entry *entry)
{
    struct modules_jit_native_entry now;
    return read(entry->address, &now, modules_jit_native_entry_bytes(ART_JIT_GDB)) && is_entry(&now, entry) &&
           link_holds(source, entry, arch_pointer(&arch_native_arch, now.previous));
}

ON_ITS_OWN static bool file_holds(const struct modules_jit_code *code)
{
    uint64_t hash;
    return modules_jit_hash(code, NULL, &hash) && hash == code->hash;
}

bool modules_jit_code_holds(const struct modules_jit_source *source, const struct modules_jit_code *code)
{
    return entry_holds(source, &code->entry) && file_holds(code);
}

// ---- the same, side by side

unsigned modules_jit_code_parts(const struct modules_jit_source *source, const struct modules_jit_code *code,
                                uint64_t previous, struct os_part parts[MODULES_JIT_CODE_PARTS_MAX])
{
    unsigned count = 0;
    parts[count++] = (struct os_part){(uintptr_t)code->entry.address, modules_jit_native_entry_bytes(ART_JIT_GDB)};
    parts[count++] = (struct os_part){(uintptr_t)link_to(source, previous), sizeof(uintptr_t)};
    for (unsigned i = 0; i < MODULES_JIT_PARTS_MAX; i++) {
        if (code->parts[i].size > MODULES_JIT_PART_BYTES_MAX)
            return 0;
        if (code->parts[i].size)
            parts[count++] =
                (struct os_part){(uintptr_t)code->entry.symfile_address + code->parts[i].offset, code->parts[i].size};
    }
    return count;
}

// As hash_part of bytes that lie there whole.
static void hash_bytes(const uint8_t *bytes, size_t size, uint64_t *hash)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
        uint64_t sum = (*hash ^ word) * 0x9e3779b97f4a7c15u;
        *hash = sum ^ sum >> 29;
    }
}

ON_ITS_OWN static bool file_parts_hold(const struct modules_jit_code *code, const struct os_part *parts, unsigned count,
                                       const uint8_t *bytes)
{
    uint64_t hash = code->entry.symfile_bytes;
    for (unsigned i = MODULES_JIT_ENTRY_PARTS; i < count; i++) {
        hash_bytes(bytes, parts[i].size, &hash);
        bytes += parts[i].size;
    }
    return hash == code->hash;
}

bool modules_jit_parts_hold(const struct modules_jit_source *source, const struct modules_jit_code *code,
                            uint64_t *previous, const struct os_part *parts, unsigned count, const uint8_t *bytes)
{
    struct modules_jit_native_entry now;
    uintptr_t link;
    memcpy(&now, bytes, parts[0].size);
    bytes += parts[0].size;
    memcpy(&link, bytes, sizeof link);
    bytes += sizeof link;
    if (!is_entry(&now, &code->entry) || !file_parts_hold(code, parts, count, bytes))
        return false;
    uint64_t known_previous = *previous;
    *previous = arch_pointer(&arch_native_arch, now.previous);
    return *previous == known_previous ? arch_pointer(&arch_native_arch, link) == code->entry.address
                                       : link_holds(source, &code->entry, *previous);
}

// ---- the list

// A list of GDB's can look as it did and be another one: its first entry tells some of these.
bool modules_jit_source_is_stale(const struct modules_jit_source *source)
{
    return !is_unchanged(source) || (source->first.address != 0 && !entry_holds(source, &source->first));
}
