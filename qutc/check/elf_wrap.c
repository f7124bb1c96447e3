// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/elf_wrap.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

// Section names; .text has no bytes, it is there for readers that expect code in a file.
static const char names[] = "\0.text\0.eh_frame\0.debug_frame\0.shstrtab";
enum { NAME_TEXT = 1, NAME_EH_FRAME = 7, NAME_DEBUG_FRAME = 17, NAME_SHSTRTAB = 30 };
enum { SECTION_COUNT = 4, HEADER_ALIGN = 16 };

struct layout {
    uint64_t frame_offset, frame_size;
    uint64_t names_offset;
    uint64_t headers_offset;
};

// Elf32 and Elf64 have the same fields in different widths.
#define DEFINE_WRITE_HEADERS(NAME, EHDR, SHDR, CLASS, ADDR)                                                            \
    static void NAME(uint8_t *bytes, const struct layout *at, const struct check_walk_index *index, bool is_eh)        \
    {                                                                                                                  \
        const struct input_frame_section *section = index->section;                                                    \
        EHDR file = {                                                                                                  \
            .e_ident = {0x7f, 'E', 'L', 'F', CLASS, ELFDATA2LSB, EV_CURRENT},                                          \
            .e_type = ET_DYN,                                                                                          \
            .e_machine = index->image->arch->elf_machine,                                                              \
            .e_version = EV_CURRENT,                                                                                   \
            .e_shoff = (ADDR)at->headers_offset,                                                                       \
            .e_ehsize = sizeof(EHDR),                                                                                  \
            .e_shentsize = sizeof(SHDR),                                                                               \
            .e_shnum = SECTION_COUNT,                                                                                  \
            .e_shstrndx = SECTION_COUNT - 1,                                                                           \
        };                                                                                                             \
        SHDR sections[SECTION_COUNT] = {                                                                               \
            {0},                                                                                                       \
            {.sh_name = NAME_TEXT,                                                                                     \
             .sh_type = SHT_NOBITS,                                                                                    \
             .sh_flags = SHF_ALLOC | SHF_EXECINSTR,                                                                    \
             .sh_offset = (ADDR)at->frame_offset,                                                                      \
             .sh_addralign = 1},                                                                                       \
            {.sh_name = is_eh ? NAME_EH_FRAME : NAME_DEBUG_FRAME,                                                      \
             .sh_type = SHT_PROGBITS,                                                                                  \
             .sh_flags = is_eh ? SHF_ALLOC : 0,                                                                        \
             .sh_addr = (ADDR)(section->vaddr + index->leading_bytes),                                                 \
             .sh_offset = (ADDR)at->frame_offset,                                                                      \
             .sh_size = (ADDR)at->frame_size,                                                                          \
             .sh_addralign = 1},                                                                                       \
            {.sh_name = NAME_SHSTRTAB,                                                                                 \
             .sh_type = SHT_STRTAB,                                                                                    \
             .sh_offset = (ADDR)at->names_offset,                                                                      \
             .sh_size = sizeof names,                                                                                  \
             .sh_addralign = 1},                                                                                       \
        };                                                                                                             \
        memcpy(bytes, &file, sizeof file);                                                                             \
        memcpy(bytes + at->headers_offset, sections, sizeof sections);                                                 \
    }
DEFINE_WRITE_HEADERS(write_headers_32, Elf32_Ehdr, Elf32_Shdr, ELFCLASS32, uint32_t)
DEFINE_WRITE_HEADERS(write_headers_64, Elf64_Ehdr, Elf64_Shdr, ELFCLASS64, uint64_t)

static uint64_t aligned(uint64_t offset)
{
    return (offset + HEADER_ALIGN - 1) & ~(uint64_t)(HEADER_ALIGN - 1);
}

int check_elf_wrap(const struct check_walk_index *index, bool as_eh, struct check_elf_wrap *wrap,
                   struct base_error *error)
{
    const struct input_frame_section *section = index->section;
    struct layout at = {.frame_offset = aligned(sizeof(Elf64_Ehdr))};
    at.frame_size = section->bytes.size - index->leading_bytes;
    at.names_offset = aligned(at.frame_offset + at.frame_size);
    at.headers_offset = aligned(at.names_offset + sizeof names);

    wrap->size = at.headers_offset + SECTION_COUNT * sizeof(Elf64_Shdr);
    wrap->bytes = calloc(1, wrap->size);
    if (!wrap->bytes)
        return base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "copy for a judge");
    memcpy(wrap->bytes + at.frame_offset, section->bytes.data + index->leading_bytes, at.frame_size);
    // Offsets of the walk count from the section's byte 0, which may lie before the copy.
    check_walk_patch(index, wrap->bytes + at.frame_offset - index->leading_bytes);
    wrap->is_eh = as_eh || section->kind == INPUT_FRAME_EH;
    if (wrap->is_eh && section->kind == INPUT_FRAME_DEBUG)
        check_walk_to_eh_frame(wrap->bytes + at.frame_offset, at.frame_size);
    memcpy(wrap->bytes + at.names_offset, names, sizeof names);
    if (index->image->arch->word_bytes == 8)
        write_headers_64(wrap->bytes, &at, index, wrap->is_eh);
    else
        write_headers_32(wrap->bytes, &at, index, wrap->is_eh);
    return 0;
}
