// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <stdlib.h>

#include "libqut/art/jit_layout.h"

enum qut_jit_fault qut_jit_copy_symfile(const struct qut_art_memory *memory,
                                        const struct qut_jit_descriptor *descriptor, const struct qut_jit_entry *entry,
                                        uint8_t **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (entry->symfile_bytes > QUT_JIT_SYMFILE_BYTES_MAX)
        return QUT_JIT_TOO_LARGE;
    size_t wanted = (size_t)entry->symfile_bytes;
    uint8_t *copy = malloc(wanted ? wanted : 1);
    if (!copy)
        return QUT_JIT_NO_MEMORY;
    bool is_read = qut_art_read(memory, entry->symfile_address, copy, wanted);
    // It was read with these values before: if they are the same now, the file was there in between.
    bool holds = qut_jit_entry_holds(memory, descriptor, entry);
    if (!is_read || !holds) {
        free(copy);
        return holds ? QUT_JIT_UNREADABLE : QUT_JIT_BUSY;
    }
    *bytes = copy;
    *size = wanted;
    return QUT_JIT_FINE;
}

// ---- completing

// What counts of an ELF file of either class.
struct sections {
    uint64_t offset;
    uint16_t count, entry_bytes;
    uint16_t file_type, names_index;
};

struct section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
};

// Whether the file is one for this process; its section headers all lie in it then.
static bool find_sections(const struct qut_arch *arch, const uint8_t *bytes, size_t size, struct sections *sections)
{
    uint16_t machine;
    if (size < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_DATA] != ELFDATA2LSB ||
        bytes[EI_CLASS] != (arch->word_bytes == 8 ? ELFCLASS64 : ELFCLASS32))
        return false;
    if (arch->word_bytes == 8) {
        Elf64_Ehdr header;
        memcpy(&header, bytes, sizeof header);
        machine = header.e_machine;
        *sections =
            (struct sections){header.e_shoff, header.e_shnum, header.e_shentsize, header.e_type, header.e_shstrndx};
    } else {
        Elf32_Ehdr header;
        memcpy(&header, bytes, sizeof header);
        machine = header.e_machine;
        *sections =
            (struct sections){header.e_shoff, header.e_shnum, header.e_shentsize, header.e_type, header.e_shstrndx};
    }
    if (machine != arch->elf_machine)
        return false;
    size_t least_bytes = arch->word_bytes == 8 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    uint64_t table_bytes = (uint64_t)sections->count * sections->entry_bytes;
    return sections->count == 0 ||
           (sections->entry_bytes >= least_bytes && sections->offset <= size && table_bytes <= size - sections->offset);
}

static struct section section_at(const struct qut_arch *arch, const uint8_t *at)
{
    if (arch->word_bytes == 8) {
        Elf64_Shdr header;
        memcpy(&header, at, sizeof header);
        return (struct section){header.sh_name, header.sh_type,   header.sh_flags,
                                header.sh_addr, header.sh_offset, header.sh_size};
    }
    Elf32_Shdr header;
    memcpy(&header, at, sizeof header);
    return (struct section){header.sh_name, header.sh_type,   header.sh_flags,
                            header.sh_addr, header.sh_offset, header.sh_size};
}

bool qut_jit_complete_symfile(const struct qut_art_memory *memory, uint8_t *bytes, size_t size)
{
    const struct qut_arch *arch = memory->arch;
    struct sections sections;
    if (!find_sections(arch, bytes, size, &sections))
        return false;
    if (sections.file_type != ET_REL)
        return true;
    size_t rest = size; // sections of a sound file do not overlap: no more than all of it is replaced
    for (unsigned i = 0; i < sections.count; i++) {
        // By its place, not copied before: whatever an overlapping section put over the headers is only data.
        uint64_t offset = sections.offset + (uint64_t)i * sections.entry_bytes;
        struct section section = section_at(arch, bytes + offset);
        bool is_loaded = (section.flags & SHF_ALLOC) && section.address != 0 && section.type != SHT_NULL;
        if (!is_loaded || section.type == SHT_NOBITS || section.size == 0)
            continue;
        if (section.offset > size || section.size > size - section.offset || section.size > rest)
            return false;
        if (!qut_art_read(memory, section.address, bytes + section.offset, (size_t)section.size))
            return false;
        rest -= (size_t)section.size;
    }
    return true;
}

size_t qut_jit_code_ranges(const struct qut_arch *arch, const uint8_t *bytes, size_t size, struct qut_jit_range *ranges,
                           size_t capacity)
{
    struct sections sections;
    size_t count = 0;
    if (!find_sections(arch, bytes, size, &sections))
        return 0;
    for (unsigned i = 0; i < sections.count; i++) {
        struct section section = section_at(arch, bytes + sections.offset + (uint64_t)i * sections.entry_bytes);
        uint64_t end = section.address + section.size;
        if (!(section.flags & SHF_ALLOC) || !(section.flags & SHF_EXECINSTR) || end <= section.address)
            continue;
        if (count < capacity) {
            ranges[count++] = (struct qut_jit_range){section.address, end};
            continue;
        }
        struct qut_jit_range *last = &ranges[capacity - 1];
        last->start = section.address < last->start ? section.address : last->start;
        last->end = end > last->end ? end : last->end;
    }
    return count;
}

static bool is_named(const struct section *names, const uint8_t *bytes, size_t size, uint32_t name, const char *wanted)
{
    size_t wanted_bytes = strlen(wanted) + 1;
    return names->offset <= size && names->size <= size - names->offset && name < names->size &&
           names->size - name >= wanted_bytes && memcmp(bytes + names->offset + name, wanted, wanted_bytes) == 0;
}

size_t qut_jit_frame_sections(const struct qut_arch *arch, const uint8_t *bytes, size_t size,
                              struct qut_jit_range *ranges, size_t capacity)
{
    static const char *const wanted[] = {".eh_frame", ".debug_frame", ".gnu_debugdata"};
    struct sections sections;
    size_t count = 0;
    if (!find_sections(arch, bytes, size, &sections) || sections.names_index >= sections.count)
        return 0;
    const uint8_t *first = bytes + sections.offset;
    struct section names = section_at(arch, first + (size_t)sections.names_index * sections.entry_bytes);
    for (unsigned i = 0; i < sections.count && count < capacity; i++) {
        struct section section = section_at(arch, first + (size_t)i * sections.entry_bytes);
        bool is_wanted = false;
        for (size_t name = 0; name < sizeof wanted / sizeof *wanted; name++)
            is_wanted = is_wanted || is_named(&names, bytes, size, section.name, wanted[name]);
        if (is_wanted && section.type != SHT_NOBITS && section.offset <= size && section.size <= size - section.offset)
            ranges[count++] = (struct qut_jit_range){section.offset, section.offset + section.size};
    }
    return count;
}
