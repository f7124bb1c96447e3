// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "libqut/art/jit_layout.h"

enum art_jit_fault art_jit_copy_symfile(const struct elf_art_memory *memory,
                                        const struct art_jit_descriptor *descriptor, const struct art_jit_entry *entry,
                                        uint8_t **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (entry->symfile_bytes > ART_JIT_SYMFILE_BYTES_MAX)
        return ART_JIT_TOO_LARGE;
    size_t wanted = (size_t)entry->symfile_bytes;
    uint8_t *copy = malloc(wanted ? wanted : 1);
    if (!copy)
        return ART_JIT_NO_MEMORY;
    bool is_read = elf_art_read(memory, entry->symfile_address, copy, wanted);
    // It was read with these values before: if they are the same now, the file was there in between.
    bool holds = art_jit_entry_holds(memory, descriptor, entry);
    if (!is_read || !holds) {
        free(copy);
        return holds ? ART_JIT_UNREADABLE : ART_JIT_BUSY;
    }
    *bytes = copy;
    *size = wanted;
    return ART_JIT_FINE;
}

// ---- completing

// Whether the file is one for this process; its section headers all lie in it then.
static bool read_header(const struct arch *arch, const uint8_t *bytes, size_t size, Elf64_Ehdr *header)
{
    bool is_64 = arch->word_bytes == 8;
    if (size < sizeof *header || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_DATA] != ELFDATA2LSB ||
        bytes[EI_CLASS] != (is_64 ? ELFCLASS64 : ELFCLASS32))
        return false;
    *header = elf_wide_header(bytes, is_64);
    uint64_t table_bytes = (uint64_t)header->e_shnum * header->e_shentsize;
    return header->e_machine == arch->elf_machine &&
           (header->e_shnum == 0 || (header->e_shentsize >= elf_section_bytes(is_64) && header->e_shoff <= size &&
                                     table_bytes <= size - header->e_shoff));
}

static Elf64_Shdr section_at(const uint8_t *bytes, const Elf64_Ehdr *header, unsigned index)
{
    return elf_wide_section(bytes + header->e_shoff + (uint64_t)index * header->e_shentsize,
                            header->e_ident[EI_CLASS] == ELFCLASS64);
}

bool art_jit_complete_symfile(const struct elf_art_memory *memory, uint8_t *bytes, size_t size)
{
    const struct arch *arch = memory->arch;
    Elf64_Ehdr header;
    if (!read_header(arch, bytes, size, &header))
        return false;
    if (header.e_type != ET_REL)
        return true;
    size_t rest = size; // sections of a sound file do not overlap: no more than all of it is replaced
    for (unsigned i = 0; i < header.e_shnum; i++) {
        // By its place, not copied before: whatever an overlapping section put over the headers is only data.
        const Elf64_Shdr section = section_at(bytes, &header, i);
        bool is_loaded = (section.sh_flags & SHF_ALLOC) && section.sh_addr != 0 && section.sh_type != SHT_NULL;
        if (!is_loaded || section.sh_type == SHT_NOBITS || section.sh_size == 0)
            continue;
        if (section.sh_offset > size || section.sh_size > size - section.sh_offset || section.sh_size > rest)
            return false;
        if (!elf_art_read(memory, section.sh_addr, bytes + section.sh_offset, (size_t)section.sh_size))
            return false;
        rest -= (size_t)section.sh_size;
    }
    return true;
}

size_t art_jit_code_ranges(const struct arch *arch, const uint8_t *bytes, size_t size, struct art_jit_range *ranges,
                           size_t capacity)
{
    Elf64_Ehdr header;
    size_t count = 0;
    if (!read_header(arch, bytes, size, &header))
        return 0;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        const Elf64_Shdr section = section_at(bytes, &header, i);
        uint64_t end = section.sh_addr + section.sh_size;
        if (!(section.sh_flags & SHF_ALLOC) || !(section.sh_flags & SHF_EXECINSTR) || end <= section.sh_addr)
            continue;
        if (count < capacity) {
            ranges[count++] = (struct art_jit_range){section.sh_addr, end};
            continue;
        }
        struct art_jit_range *last = &ranges[capacity - 1];
        last->start = section.sh_addr < last->start ? section.sh_addr : last->start;
        last->end = end > last->end ? end : last->end;
    }
    return count;
}

static bool is_named(const Elf64_Shdr *names, const uint8_t *bytes, size_t size, uint32_t name, const char *wanted)
{
    size_t wanted_bytes = strlen(wanted) + 1;
    return names->sh_offset <= size && names->sh_size <= size - names->sh_offset && name < names->sh_size &&
           names->sh_size - name >= wanted_bytes && memcmp(bytes + names->sh_offset + name, wanted, wanted_bytes) == 0;
}

size_t art_jit_frame_sections(const struct arch *arch, const uint8_t *bytes, size_t size, struct art_jit_range *ranges,
                              size_t capacity)
{
    static const char *const wanted[] = {".eh_frame", ".debug_frame", ".gnu_debugdata"};
    Elf64_Ehdr header;
    size_t count = 0;
    if (!read_header(arch, bytes, size, &header) || header.e_shstrndx >= header.e_shnum)
        return 0;
    const Elf64_Shdr names = section_at(bytes, &header, header.e_shstrndx);
    for (unsigned i = 0; i < header.e_shnum && count < capacity; i++) {
        const Elf64_Shdr section = section_at(bytes, &header, i);
        bool is_wanted = false;
        for (size_t name = 0; name < sizeof wanted / sizeof *wanted; name++)
            is_wanted = is_wanted || is_named(&names, bytes, size, section.sh_name, wanted[name]);
        if (is_wanted && section.sh_type != SHT_NOBITS && section.sh_offset <= size &&
            section.sh_size <= size - section.sh_offset)
            ranges[count++] = (struct art_jit_range){section.sh_offset, section.sh_offset + section.sh_size};
    }
    return count;
}
