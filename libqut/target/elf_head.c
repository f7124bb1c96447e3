// SPDX-License-Identifier: Apache-2.0
#include "libqut/target/elf_head.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM_HEADERS_MAX = 128, NOTE_BYTES_MAX = 4096, DYNAMIC_ENTRIES_MAX = 1024, SONAME_BYTES_MAX = 256 };
enum { SECTIONS_MAX = 256 };

static bool read_header(struct qut_elf_head *head, qut_image_read read, void *context, uint64_t *table,
                        unsigned *entry_bytes, unsigned *count)
{
    union {
        unsigned char ident[EI_NIDENT];
        Elf32_Ehdr narrow;
        Elf64_Ehdr wide;
    } header;
    size_t got = read(context, 0, &header, sizeof header);
    if (got < sizeof header.narrow || memcmp(header.ident, ELFMAG, SELFMAG) != 0 ||
        header.ident[EI_DATA] != ELFDATA2LSB)
        return false;
    head->is_64 = header.ident[EI_CLASS] == ELFCLASS64;
    if (head->is_64 ? got < sizeof header.wide : header.ident[EI_CLASS] != ELFCLASS32)
        return false;
    head->machine = header.narrow.e_machine; // both classes agree up to here
    head->type = header.narrow.e_type;
    head->entry = head->is_64 ? header.wide.e_entry : header.narrow.e_entry;
    *table = head->is_64 ? header.wide.e_phoff : header.narrow.e_phoff;
    *count = head->is_64 ? header.wide.e_phnum : header.narrow.e_phnum;
    *entry_bytes = head->is_64 ? header.wide.e_phentsize : header.narrow.e_phentsize;
    if ((head->is_64 ? header.wide.e_shentsize : header.narrow.e_shentsize) ==
        (head->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr))) {
        head->section_table = head->is_64 ? header.wide.e_shoff : header.narrow.e_shoff;
        head->section_count = head->is_64 ? header.wide.e_shnum : header.narrow.e_shnum;
    }
    return *entry_bytes == (head->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) && *count > 0 &&
           *count <= PROGRAM_HEADERS_MAX;
}

struct qut_elf_segment qut_elf_segment_of(const uint8_t *header, bool is_64)
{
    if (is_64) {
        Elf64_Phdr p;
        memcpy(&p, header, sizeof p);
        return (struct qut_elf_segment){p.p_type, p.p_flags, p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, p.p_align};
    }
    Elf32_Phdr p;
    memcpy(&p, header, sizeof p);
    return (struct qut_elf_segment){p.p_type, p.p_flags, p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, p.p_align};
}

static void add_segment(struct qut_elf_head *head, const struct qut_elf_segment *segment)
{
    uint32_t type = segment->type;
    if (type == PT_LOAD && head->load_count < QUT_ELF_LOADS_MAX)
        head->loads[head->load_count++] = *segment;
    else if (type == PT_NOTE && head->note_count < QUT_ELF_NOTES_MAX)
        head->notes[head->note_count++] = *segment;
    else if (type == PT_DYNAMIC)
        head->dynamic = *segment;
    else if (type == PT_INTERP)
        head->has_interpreter = true;
}

bool qut_elf_head_read(struct qut_elf_head *head, qut_image_read read, void *context)
{
    uint64_t table;
    unsigned entry_bytes, count;
    *head = (struct qut_elf_head){0};
    if (!read_header(head, read, context, &table, &entry_bytes, &count))
        return false;
    unsigned char entries[PROGRAM_HEADERS_MAX * sizeof(Elf64_Phdr)];
    size_t wanted = (size_t)count * entry_bytes;
    if (table > UINT32_MAX || read(context, table, entries, wanted) != wanted)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct qut_elf_segment segment = qut_elf_segment_of(entries + (size_t)i * entry_bytes, head->is_64);
        add_segment(head, &segment);
    }
    return true;
}

static uint32_t build_id_in_segment(const struct qut_elf_segment *note, qut_image_read read, void *context,
                                    bool by_vaddr, uint8_t build_id[QUT_BUILD_ID_MAX])
{
    uint8_t bytes[NOTE_BYTES_MAX];
    size_t wanted = note->file_size < sizeof bytes ? (size_t)note->file_size : sizeof bytes;
    size_t got = read(context, by_vaddr ? note->vaddr : note->offset, bytes, wanted);
    size_t at = 0;
    uint32_t size = qut_find_build_id(bytes, got, note->alignment, &at);
    memcpy(build_id, bytes + at, size);
    return size;
}

static uint32_t build_id_in_sections(const struct qut_elf_head *head, qut_image_read read, void *context,
                                     uint8_t build_id[QUT_BUILD_ID_MAX])
{
    for (unsigned i = 0; i < head->section_count && i < SECTIONS_MAX; i++) {
        struct qut_elf_segment note = {0};
        uint32_t type;
        if (head->is_64) {
            Elf64_Shdr s;
            if (read(context, head->section_table + i * sizeof s, &s, sizeof s) != sizeof s)
                return 0;
            type = s.sh_type;
            note.offset = s.sh_offset;
            note.file_size = s.sh_size;
            note.alignment = s.sh_addralign;
        } else {
            Elf32_Shdr s;
            if (read(context, head->section_table + i * sizeof s, &s, sizeof s) != sizeof s)
                return 0;
            type = s.sh_type;
            note.offset = s.sh_offset;
            note.file_size = s.sh_size;
            note.alignment = s.sh_addralign;
        }
        uint32_t size = type == SHT_NOTE ? build_id_in_segment(&note, read, context, false, build_id) : 0;
        if (size)
            return size;
    }
    return 0;
}

uint32_t qut_elf_build_id(const struct qut_elf_head *head, qut_image_read read, void *context, bool by_vaddr,
                          uint8_t build_id[QUT_BUILD_ID_MAX])
{
    for (unsigned i = 0; i < head->note_count; i++) {
        uint32_t size = build_id_in_segment(&head->notes[i], read, context, by_vaddr, build_id);
        if (size)
            return size;
    }
    return by_vaddr ? 0 : build_id_in_sections(head, read, context, build_id);
}

static bool offset_of_vaddr(const struct qut_elf_head *head, uint64_t vaddr, uint64_t *offset)
{
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct qut_elf_segment *load = &head->loads[i];
        if (vaddr - load->vaddr < load->file_size) {
            *offset = vaddr - load->vaddr + load->offset;
            return true;
        }
    }
    return false;
}

char *qut_elf_soname(const struct qut_elf_head *head, qut_image_read read, void *context)
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

static bool is_executable(const struct qut_elf_segment *segment)
{
    return segment->flags & PF_X;
}

bool qut_elf_mapped_vaddr(const struct qut_elf_head *head, uint64_t offset, uint64_t size, bool executable,
                          uint64_t *vaddr)
{
    // Segments share pages of the file with their neighbours: the one with the same purpose counts, then the one that
    // fills more of the mapping.
    const struct qut_elf_segment *best = NULL;
    uint64_t best_overlap = 0;
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct qut_elf_segment *load = &head->loads[i];
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
