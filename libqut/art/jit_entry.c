// SPDX-License-Identifier: Apache-2.0
// One descriptor, one entry: what walks read too. No loops, little stack.
#include "libqut/art/jit_layout.h"

const char *art_jit_fault_text(enum art_jit_fault fault)
{
    switch (fault) {
    case ART_JIT_FINE: return "fine";
    case ART_JIT_UNREADABLE: return "memory of the list cannot be read";
    case ART_JIT_BAD_VERSION: return "the list has a version that is not known";
    case ART_JIT_BUSY: return "the list changed whenever it was read";
    case ART_JIT_CYCLE: return "the list has a cycle";
    case ART_JIT_TOO_MANY: return "the list has too many entries";
    case ART_JIT_TOO_LARGE: return "a symbol file is too large";
    case ART_JIT_NO_MEMORY: return "no memory";
    case ART_JIT_FAULT_COUNT: break;
    }
    return "unknown fault";
}

// Behind the descriptor of any other program lies whatever its linker put there: the sizes have to be right too. False
// where the magic is one that is not known.
static bool parse_android(const struct arch *arch, const uint8_t *bytes, size_t size,
                          struct art_jit_descriptor *descriptor)
{
    enum {
        FLAGS = 8,
        DESCRIPTOR_BYTES = 12,
        ENTRY_BYTES = 16,
        SEQLOCK = 20,
        TIMESTAMP = 24,
        END = 32,
        SANE_BYTES = 4096
    };
    static const char magic[] = "Android";
    size_t offset = art_jit_magic_offset(arch);
    const uint8_t *at = bytes + offset;
    if (size < offset + END || memcmp(at, magic, sizeof magic - 1) != 0)
        return true;
    uint8_t version = at[sizeof magic - 1];
    if (version != '1' && version != '2')
        return false;
    enum art_jit_layout layout = version == '1' ? ART_JIT_ANDROID1 : ART_JIT_ANDROID2;
    uint32_t descriptor_bytes = art_jit_u32(at + DESCRIPTOR_BYTES), entry_bytes = art_jit_u32(at + ENTRY_BYTES);
    if (descriptor_bytes < offset + END || descriptor_bytes > SANE_BYTES ||
        entry_bytes < art_jit_entry_bytes(arch, layout) || entry_bytes > SANE_BYTES)
        return false;
    descriptor->layout = layout;
    descriptor->entry_bytes = entry_bytes;
    descriptor->seqlock = art_jit_u32(at + SEQLOCK);
    descriptor->timestamp = art_jit_u64(at + TIMESTAMP);
    return true;
}

enum art_jit_fault art_jit_read_descriptor(const struct elf_art_memory *memory, uint64_t address,
                                           struct art_jit_descriptor *descriptor)
{
    enum { VERSION = 1, ACTION_OFFSET = 4, RELEVANT_OFFSET = 8 };
    const struct arch *arch = memory->arch;
    uint8_t bytes[ART_JIT_DESCRIPTOR_BYTES_MAX];
    size_t wanted = art_jit_magic_offset(arch) + 32;
    *descriptor = (struct art_jit_descriptor){.address = address};
    size_t size = memory->read(memory->context, address, bytes, wanted);
    if (size < art_jit_magic_offset(arch))
        return ART_JIT_UNREADABLE;
    if (art_jit_u32(bytes) != VERSION)
        return ART_JIT_BAD_VERSION;
    descriptor->layout = ART_JIT_GDB;
    descriptor->entry_bytes = (uint32_t)art_jit_entry_bytes(arch, ART_JIT_GDB);
    descriptor->action = art_jit_u32(bytes + ACTION_OFFSET);
    descriptor->relevant_entry = art_jit_pointer(arch, bytes + RELEVANT_OFFSET);
    descriptor->first_entry = art_jit_pointer(arch, bytes + RELEVANT_OFFSET + arch->word_bytes);
    return parse_android(arch, bytes, size, descriptor) ? ART_JIT_FINE : ART_JIT_BAD_VERSION;
}

bool art_jit_read_entry(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor,
                        uint64_t address, struct art_jit_entry *entry)
{
    uint8_t bytes[ART_JIT_ENTRY_BYTES_MAX];
    if (!elf_art_read(memory, address, bytes, art_jit_entry_bytes(memory->arch, descriptor->layout)))
        return false;
    art_jit_parse_entry(memory->arch, descriptor->layout, address, bytes, entry);
    return true;
}

static bool is_locked(const struct art_jit_descriptor *descriptor)
{
    return descriptor->seqlock & 1;
}

bool art_jit_is_unchanged(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor)
{
    struct art_jit_descriptor now;
    if (memory->never_changes)
        return true;
    return !is_locked(descriptor) && art_jit_read_descriptor(memory, descriptor->address, &now) == ART_JIT_FINE &&
           now.layout == descriptor->layout && now.entry_bytes == descriptor->entry_bytes &&
           now.action == descriptor->action && now.seqlock == descriptor->seqlock &&
           now.relevant_entry == descriptor->relevant_entry && now.first_entry == descriptor->first_entry &&
           now.timestamp == descriptor->timestamp;
}

// Where entries are freed, one holds if it is still linked from its other side. A removal of an entry changes that
// link before the memory becomes anything else.
static bool is_linked(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor,
                      const struct art_jit_entry *entry)
{
    const struct arch *arch = memory->arch;
    uint8_t link[8];
    uint64_t link_address = entry->previous ? entry->previous // its `next` comes first
                                            : descriptor->address + art_jit_magic_offset(arch) - arch->word_bytes;
    return elf_art_read(memory, link_address, link, arch->word_bytes) && art_jit_pointer(arch, link) == entry->address;
}

bool art_jit_entry_holds(const struct elf_art_memory *memory, const struct art_jit_descriptor *descriptor,
                         const struct art_jit_entry *entry)
{
    struct art_jit_entry now;
    if (memory->never_changes)
        return true;
    return art_jit_read_entry(memory, descriptor, entry->address, &now) && now.seqlock == entry->seqlock &&
           !(now.seqlock & 1) && now.symfile_address == entry->symfile_address &&
           now.symfile_bytes == entry->symfile_bytes && now.timestamp == entry->timestamp &&
           (descriptor->layout == ART_JIT_ANDROID2 || is_linked(memory, descriptor, &now));
}
