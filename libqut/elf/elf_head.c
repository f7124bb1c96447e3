// SPDX-License-Identifier: Apache-2.0
#include "libqut/elf/elf_head.h"

#include <stdlib.h>

#include "formats/elf_wide_inline.h"

enum { PROGRAM_HEADERS_MAX = 128, NOTE_BYTES_MAX = 4096, DYNAMIC_ENTRIES_MAX = 1024, SONAME_BYTES_MAX = 256 };
enum { SECTIONS_MAX = 256 };

static bool read_header(struct elf_head *head, elf_image_read read, void *context, uint64_t *table,
                        unsigned *entry_bytes, unsigned *count)
{
    uint8_t bytes[sizeof(Elf64_Ehdr)];
    size_t got = read(context, 0, bytes, sizeof bytes);
    if (got < sizeof(Elf32_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_DATA] != ELFDATA2LSB)
        return false;
    head->is_64 = bytes[EI_CLASS] == ELFCLASS64;
    if (head->is_64 ? got < sizeof bytes : bytes[EI_CLASS] != ELFCLASS32)
        return false;
    const Elf64_Ehdr header = elf_wide_header(bytes, head->is_64);
    head->machine = header.e_machine;
    head->type = header.e_type;
    head->entry = header.e_entry;
    *table = header.e_phoff;
    *count = header.e_phnum;
    *entry_bytes = header.e_phentsize;
    if (header.e_shentsize == elf_section_bytes(head->is_64)) {
        head->section_table = header.e_shoff;
        head->section_count = header.e_shnum;
    }
    return *entry_bytes == elf_segment_bytes(head->is_64) && *count > 0 && *count <= PROGRAM_HEADERS_MAX;
}

struct elf_segment elf_segment_of(const uint8_t *header, bool is_64)
{
    const Elf64_Phdr p = elf_wide_segment(header, is_64);
    return (struct elf_segment){p.p_type, p.p_flags, p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, p.p_align};
}

static void add_segment(struct elf_head *head, const struct elf_segment *segment)
{
    uint32_t type = segment->type;
    if (type == PT_LOAD && head->load_count < ELF_LOADS_MAX)
        head->loads[head->load_count++] = *segment;
    else if (type == PT_NOTE && head->note_count < ELF_NOTES_MAX)
        head->notes[head->note_count++] = *segment;
    else if (type == PT_DYNAMIC)
        head->dynamic = *segment;
    else if (type == PT_INTERP)
        head->has_interpreter = true;
}

bool elf_head_read(struct elf_head *head, elf_image_read read, void *context)
{
    uint64_t table;
    unsigned entry_bytes, count;
    *head = (struct elf_head){0};
    if (!read_header(head, read, context, &table, &entry_bytes, &count))
        return false;
    unsigned char entries[PROGRAM_HEADERS_MAX * sizeof(Elf64_Phdr)];
    size_t wanted = (size_t)count * entry_bytes;
    if (table > UINT32_MAX || read(context, table, entries, wanted) != wanted)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct elf_segment segment = elf_segment_of(entries + (size_t)i * entry_bytes, head->is_64);
        add_segment(head, &segment);
    }
    return true;
}

static uint32_t build_id_in_segment(const struct elf_segment *note, elf_image_read read, void *context, bool by_vaddr,
                                    uint8_t build_id[ELF_BUILD_ID_MAX])
{
    uint8_t bytes[NOTE_BYTES_MAX];
    size_t wanted = note->file_size < sizeof bytes ? (size_t)note->file_size : sizeof bytes;
    size_t got = read(context, by_vaddr ? note->vaddr : note->offset, bytes, wanted);
    size_t at = 0;
    uint32_t size = elf_find_build_id(bytes, got, note->alignment, &at);
    memcpy(build_id, bytes + at, size);
    return size;
}

static uint32_t build_id_in_sections(const struct elf_head *head, elf_image_read read, void *context,
                                     uint8_t build_id[ELF_BUILD_ID_MAX])
{
    for (unsigned i = 0; i < head->section_count && i < SECTIONS_MAX; i++) {
        uint8_t bytes[sizeof(Elf64_Shdr)];
        size_t wanted = elf_section_bytes(head->is_64);
        if (read(context, head->section_table + i * wanted, bytes, wanted) != wanted)
            return 0;
        const Elf64_Shdr s = elf_wide_section(bytes, head->is_64);
        const struct elf_segment note = {.offset = s.sh_offset, .file_size = s.sh_size, .alignment = s.sh_addralign};
        uint32_t size = s.sh_type == SHT_NOTE ? build_id_in_segment(&note, read, context, false, build_id) : 0;
        if (size)
            return size;
    }
    return 0;
}

uint32_t elf_build_id(const struct elf_head *head, elf_image_read read, void *context, bool by_vaddr,
                      uint8_t build_id[ELF_BUILD_ID_MAX])
{
    for (unsigned i = 0; i < head->note_count; i++) {
        uint32_t size = build_id_in_segment(&head->notes[i], read, context, by_vaddr, build_id);
        if (size)
            return size;
    }
    return by_vaddr ? 0 : build_id_in_sections(head, read, context, build_id);
}

static bool offset_of_vaddr(const struct elf_head *head, uint64_t vaddr, uint64_t *offset)
{
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct elf_segment *load = &head->loads[i];
        if (vaddr - load->vaddr < load->file_size) {
            *offset = vaddr - load->vaddr + load->offset;
            return true;
        }
    }
    return false;
}

char *elf_soname(const struct elf_head *head, elf_image_read read, void *context)
{
    uint64_t strings = 0, name = 0;
    bool has_strings = false, has_name = false;
    unsigned word_bytes = head->is_64 ? 8 : 4;
    uint64_t entries = head->dynamic.file_size / (2 * word_bytes);
    for (uint64_t i = 0; i < entries && i < DYNAMIC_ENTRIES_MAX; i++) {
        uint8_t bytes[16];
        uint64_t tag = 0, value = 0;
        if (read(context, head->dynamic.offset + i * 2 * word_bytes, bytes, 2 * word_bytes) != 2 * word_bytes)
            return NULL;
        memcpy(&tag, bytes, word_bytes);
        memcpy(&value, bytes + word_bytes, word_bytes);
        if (tag == DT_NULL)
            break;
        if (tag == DT_STRTAB) {
            strings = value;
            has_strings = true;
        } else if (tag == DT_SONAME) {
            name = value;
            has_name = true;
        }
    }
    char text[SONAME_BYTES_MAX];
    uint64_t offset;
    if (!has_strings || !has_name || !offset_of_vaddr(head, strings + name, &offset))
        return NULL;
    size_t got = read(context, offset, text, sizeof text);
    return got && memchr(text, '\0', got) && text[0] ? strdup(text) : NULL;
}

static uint64_t overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    if (a < b)
        return b - a < a_size ? (a_size - (b - a) < b_size ? a_size - (b - a) : b_size) : 0;
    return a - b < b_size ? (b_size - (a - b) < a_size ? b_size - (a - b) : a_size) : 0;
}

static bool is_executable(const struct elf_segment *segment)
{
    return segment->flags & PF_X;
}

bool elf_mapped_vaddr(const struct elf_head *head, uint64_t offset, uint64_t size, bool executable, uint64_t *vaddr)
{
    // Segments share pages of the file with their neighbours: the one with the same purpose counts, then the one that
    // fills more of the mapping.
    const struct elf_segment *best = NULL;
    uint64_t best_overlap = 0;
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct elf_segment *load = &head->loads[i];
        uint64_t bytes = overlap(offset, size, load->offset, load->file_size);
        if (bytes == 0)
            continue;
        bool fits = is_executable(load) == executable, best_fits = best && is_executable(best) == executable;
        if (!best || fits > best_fits || (fits == best_fits && bytes > best_overlap)) {
            best = load;
            best_overlap = bytes;
        }
    }
    if (best)
        *vaddr = best->vaddr + (offset - best->offset);
    return best != NULL;
}
