// SPDX-License-Identifier: Apache-2.0
// ELF files, section by section: the headers that lead to a part stay, or one field of one of them changes; a part that
// grows moves to the end of the file.
#include <string.h>

#include "formats/elf_wide_inline.h"
#include "tests/proof/fuzz/targets.h"

struct parts {
    bool is_64;
    Elf64_Ehdr header;
    size_t section_bytes, segment_bytes;
};

static bool find(struct parts *parts, const uint8_t *data, size_t size)
{
    if (size < sizeof(Elf32_Ehdr) || memcmp(data, ELFMAG, SELFMAG) != 0)
        return false;
    parts->is_64 = data[EI_CLASS] == ELFCLASS64;
    if (size < elf_header_bytes(parts->is_64))
        return false;
    parts->header = elf_wide_header(data, parts->is_64);
    parts->section_bytes = elf_section_bytes(parts->is_64);
    parts->segment_bytes = elf_segment_bytes(parts->is_64);
    return true;
}

static bool is_inside(uint64_t offset, uint64_t bytes, size_t size)
{
    return offset <= size && bytes <= size - offset;
}

// Where the number `which` of a table of headers is; false: not in the file.
static bool header_at(uint64_t table, unsigned which, size_t bytes, size_t size, size_t *at)
{
    if (!is_inside(table, ((uint64_t)which + 1) * bytes, size))
        return false;
    *at = (size_t)table + which * bytes;
    return true;
}

static void store_place(uint8_t *header, bool is_64, uint64_t offset, uint64_t bytes)
{
    if (is_64) {
        Elf64_Shdr section;
        memcpy(&section, header, sizeof section);
        section.sh_offset = offset;
        section.sh_size = bytes;
        memcpy(header, &section, sizeof section);
    } else {
        Elf32_Shdr section;
        memcpy(&section, header, sizeof section);
        section.sh_offset = (uint32_t)offset;
        section.sh_size = (uint32_t)bytes;
        memcpy(header, &section, sizeof section);
    }
}

static bool holds_records(const struct parts *parts, const uint8_t *data, size_t size, uint32_t name)
{
    static const char *const names[] = {".eh_frame", ".debug_frame"};
    size_t at;
    if (!header_at(parts->header.e_shoff, parts->header.e_shstrndx, parts->section_bytes, size, &at))
        return false;
    const Elf64_Shdr strings = elf_wide_section(data + at, parts->is_64);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]) + 1;
        if (name < size && is_inside(strings.sh_offset, name + length, size) &&
            memcmp(data + strings.sh_offset + name, names[i], length) == 0)
            return true;
    }
    return false;
}

// The contents of a section, which may grow: then they lie behind all else.
static size_t mutate_section(struct fuzz_mutation *m, const struct parts *parts, uint8_t *data, size_t size,
                             size_t max_size)
{
    size_t at;
    if (parts->header.e_shnum == 0 ||
        !header_at(parts->header.e_shoff, fuzz_random(m, parts->header.e_shnum), parts->section_bytes, size, &at))
        return 0;
    const Elf64_Shdr section = elf_wide_section(data + at, parts->is_64);
    if (section.sh_size == 0 || !is_inside(section.sh_offset, section.sh_size, size))
        return 0;
    bool is_frames = holds_records(parts, data, size, section.sh_name);
    if (fuzz_random(m, 2) == 0 || size + section.sh_size > max_size) {
        m->bytes(data + section.sh_offset, (size_t)section.sh_size, (size_t)section.sh_size);
        return size;
    }
    memmove(data + size, data + section.sh_offset, (size_t)section.sh_size);
    size_t made = (is_frames ? fuzz_mutate_records(m, data + size, (size_t)section.sh_size, max_size - size)
                             : m->bytes(data + size, (size_t)section.sh_size, max_size - size));
    store_place(data + at, parts->is_64, size, made);
    return size + made;
}

// The contents of a segment: notes, the dynamic section, what a core file has of memory.
static size_t mutate_segment(struct fuzz_mutation *m, const struct parts *parts, uint8_t *data, size_t size)
{
    size_t at;
    if (parts->header.e_phnum == 0 ||
        !header_at(parts->header.e_phoff, fuzz_random(m, parts->header.e_phnum), parts->segment_bytes, size, &at))
        return 0;
    const Elf64_Phdr segment = elf_wide_segment(data + at, parts->is_64);
    if (segment.p_filesz == 0 || !is_inside(segment.p_offset, segment.p_filesz, size))
        return 0;
    // Notes one by one: a header that is changed hides all that follow.
    size_t from = (size_t)segment.p_offset, bytes = (size_t)segment.p_filesz;
    while (segment.p_type == PT_NOTE && bytes > sizeof(Elf64_Nhdr) && fuzz_random(m, 4)) {
        Elf64_Nhdr note;
        memcpy(&note, data + from, sizeof note);
        uint64_t all = sizeof note + (((uint64_t)note.n_namesz + 3) & ~3u) + (((uint64_t)note.n_descsz + 3) & ~3u);
        if (all >= bytes)
            break;
        if (fuzz_random(m, 4) == 0) {
            bytes = (size_t)all;
            break;
        }
        from += (size_t)all;
        bytes -= (size_t)all;
    }
    m->bytes(data + from, bytes, bytes);
    return size;
}

// One header of a section or a segment.
static size_t mutate_header(struct fuzz_mutation *m, const struct parts *parts, uint8_t *data, size_t size)
{
    bool is_section = fuzz_random(m, 2);
    unsigned count = is_section ? parts->header.e_shnum : parts->header.e_phnum;
    size_t bytes = is_section ? parts->section_bytes : parts->segment_bytes, at;
    if (count == 0 ||
        !header_at(is_section ? parts->header.e_shoff : parts->header.e_phoff, fuzz_random(m, count), bytes, size, &at))
        return 0;
    size_t field = at + fuzz_random(m, (uint32_t)bytes / 4) * 4;
    m->bytes(data + field, 4, 4);
    return size;
}

size_t fuzz_mutate_elf(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    struct parts parts;
    size_t made = 0;
    if (find(&parts, data, size)) {
        switch (fuzz_random(m, 6)) {
        case 0: made = mutate_header(m, &parts, data, size); break;
        case 1: made = mutate_segment(m, &parts, data, size); break;
        default: made = mutate_section(m, &parts, data, size, max_size); break;
        }
    }
    return made ? made : m->bytes(data, size, max_size);
}

// One byte says how the file is read.
size_t fuzz_mutate_elf_behind_byte(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    if (size < 2 || fuzz_random(m, 16) == 0)
        return m->bytes(data, size, max_size);
    return 1 + fuzz_mutate_elf(m, data + 1, size - 1, max_size - 1);
}
