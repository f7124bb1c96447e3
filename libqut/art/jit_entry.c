// SPDX-License-Identifier: Apache-2.0
// One descriptor, one entry: what walks read too. No loops, little stack.
#include "libqut/art/jit_layout.h"

const char *qut_jit_fault_text(enum qut_jit_fault fault)
{
    switch (fault) {
    case QUT_JIT_FINE: return "fine";
    case QUT_JIT_UNREADABLE: return "memory of the list cannot be read";
    case QUT_JIT_BAD_VERSION: return "the list has a version that is not known";
    case QUT_JIT_BUSY: return "the list changed whenever it was read";
    case QUT_JIT_CYCLE: return "the list has a cycle";
    case QUT_JIT_TOO_MANY: return "the list has too many entries";
    case QUT_JIT_TOO_LARGE: return "a symbol file is too large";
    case QUT_JIT_NO_MEMORY: return "no memory";
    case QUT_JIT_FAULT_COUNT: break;
    }
    return "unknown fault";
}

// Behind the descriptor of any other program lies whatever its linker put there: the sizes have to be right too. False
// where the magic is one that is not known.
static bool parse_android(const struct qut_arch *arch, const uint8_t *bytes, size_t size,
                          struct qut_jit_descriptor *descriptor)
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
    size_t offset = qut_jit_magic_offset(arch);
    const uint8_t *at = bytes + offset;
    if (size < offset + END || memcmp(at, magic, sizeof magic - 1) != 0)
        return true;
    uint8_t version = at[sizeof magic - 1];
    if (version != '1' && version != '2')
        return false;
    enum qut_jit_layout layout = version == '1' ? QUT_JIT_ANDROID1 : QUT_JIT_ANDROID2;
    uint32_t descriptor_bytes = qut_jit_u32(at + DESCRIPTOR_BYTES), entry_bytes = qut_jit_u32(at + ENTRY_BYTES);
    if (descriptor_bytes < offset + END || descriptor_bytes > SANE_BYTES ||
        entry_bytes < qut_jit_entry_bytes(arch, layout) || entry_bytes > SANE_BYTES)
        return false;
    descriptor->layout = layout;
    descriptor->entry_bytes = entry_bytes;
    descriptor->seqlock = qut_jit_u32(at + SEQLOCK);
    descriptor->timestamp = qut_jit_u64(at + TIMESTAMP);
    return true;
}

enum qut_jit_fault qut_jit_read_descriptor(const struct qut_art_memory *memory, uint64_t address,
                                           struct qut_jit_descriptor *descriptor)
{
    enum { VERSION = 1, ACTION_OFFSET = 4, RELEVANT_OFFSET = 8 };
    const struct qut_arch *arch = memory->arch;
    uint8_t bytes[QUT_JIT_DESCRIPTOR_BYTES_MAX];
    size_t wanted = qut_jit_magic_offset(arch) + 32;
    *descriptor = (struct qut_jit_descriptor){.address = address};
    size_t size = memory->read(memory->context, address, bytes, wanted);
    if (size < qut_jit_magic_offset(arch))
        return QUT_JIT_UNREADABLE;
    if (qut_jit_u32(bytes) != VERSION)
        return QUT_JIT_BAD_VERSION;
    descriptor->layout = QUT_JIT_GDB;
    descriptor->entry_bytes = (uint32_t)qut_jit_entry_bytes(arch, QUT_JIT_GDB);
    descriptor->action = qut_jit_u32(bytes + ACTION_OFFSET);
    descriptor->relevant_entry = qut_jit_pointer(arch, bytes + RELEVANT_OFFSET);
    descriptor->first_entry = qut_jit_pointer(arch, bytes + RELEVANT_OFFSET + arch->word_bytes);
    return parse_android(arch, bytes, size, descriptor) ? QUT_JIT_FINE : QUT_JIT_BAD_VERSION;
}

bool qut_jit_read_entry(const struct qut_art_memory *memory, const struct qut_jit_descriptor *descriptor,
                        uint64_t address, struct qut_jit_entry *entry)
{
    uint8_t bytes[QUT_JIT_ENTRY_BYTES_MAX];
    if (!qut_art_read(memory, address, bytes, qut_jit_entry_bytes(memory->arch, descriptor->layout)))
        return false;
    qut_jit_parse_entry(memory->arch, descriptor->layout, address, bytes, entry);
    return true;
}

static bool is_locked(const struct qut_jit_descriptor *descriptor)
{
    return descriptor->seqlock & 1;
}

bool qut_jit_is_unchanged(const struct qut_art_memory *memory, const struct qut_jit_descriptor *descriptor)
{
    struct qut_jit_descriptor now;
    return !is_locked(descriptor) && qut_jit_read_descriptor(memory, descriptor->address, &now) == QUT_JIT_FINE &&
           now.layout == descriptor->layout && now.entry_bytes == descriptor->entry_bytes &&
           now.action == descriptor->action && now.seqlock == descriptor->seqlock &&
           now.relevant_entry == descriptor->relevant_entry && now.first_entry == descriptor->first_entry &&
           now.timestamp == descriptor->timestamp;
}

// Where entries are freed, one holds if it is still linked from its other side. Whoever takes an entry out changes that
// link before the memory becomes anything else.
static bool is_linked(const struct qut_art_memory *memory, const struct qut_jit_descriptor *descriptor,
                      const struct qut_jit_entry *entry)
{
    const struct qut_arch *arch = memory->arch;
    uint8_t link[8];
    uint64_t link_address = entry->previous ? entry->previous // its `next` comes first
                                            : descriptor->address + qut_jit_magic_offset(arch) - arch->word_bytes;
    return qut_art_read(memory, link_address, link, arch->word_bytes) && qut_jit_pointer(arch, link) == entry->address;
}

bool qut_jit_entry_holds(const struct qut_art_memory *memory, const struct qut_jit_descriptor *descriptor,
                         const struct qut_jit_entry *entry)
{
    struct qut_jit_entry now;
    return qut_jit_read_entry(memory, descriptor, entry->address, &now) && now.seqlock == entry->seqlock &&
           !(now.seqlock & 1) && now.symfile_address == entry->symfile_address &&
           now.symfile_bytes == entry->symfile_bytes && now.timestamp == entry->timestamp &&
           (descriptor->layout == QUT_JIT_ANDROID2 || is_linked(memory, descriptor, &now));
}
