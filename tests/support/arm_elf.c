// SPDX-License-Identifier: Apache-2.0
#include "tests/support/arm_elf.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>

// Where the parts lie in the file. Segments are not page-aligned: nothing here is ever mapped.
enum {
    PROGRAM_HEADERS_AT = sizeof(Elf32_Ehdr),
    PROGRAM_HEADERS = 5,
    SECTION_HEADERS_AT = 0x200,
    SECTION_HEADERS = 6,
    NAMES_AT = 0x300,
    TEXT_AT = 0x1000,
};

static const char names[] = "\0.text\0.text2\0.ARM.extab\0.ARM.exidx\0.shstrtab";
enum { NAME_TEXT = 1, NAME_TEXT2 = 7, NAME_EXTAB = 14, NAME_EXIDX = 25, NAME_SHSTRTAB = 36 };

struct arm_elf arm_elf(uint32_t text_start, uint32_t text_end)
{
    return (struct arm_elf){.text = {{text_start, text_end}}, .exidx_vaddr = 0x00200000, .extab_vaddr = 0x00100000};
}

static uint32_t prel31_to(uint32_t target, uint32_t place)
{
    return (target - place) & UINT32_C(0x7fffffff);
}

static uint32_t next_place(const struct arm_elf *elf)
{
    return elf->exidx_vaddr + 4 * (uint32_t)elf->exidx_words;
}

void arm_elf_inline_entry(struct arm_elf *elf, uint32_t pc, uint32_t data)
{
    ck_assert_uint_le(elf->exidx_words + 2, ARM_ELF_WORDS_MAX);
    elf->exidx[elf->exidx_words] = prel31_to(pc, next_place(elf));
    elf->exidx[elf->exidx_words + 1] = data;
    elf->exidx_words += 2;
}

void arm_elf_table_entry(struct arm_elf *elf, uint32_t pc, size_t extab_index)
{
    uint32_t target = elf->extab_vaddr + 4 * (uint32_t)extab_index;
    arm_elf_inline_entry(elf, pc, prel31_to(target, next_place(elf) + 4));
}

size_t arm_elf_extab_word(struct arm_elf *elf, uint32_t word)
{
    ck_assert_uint_lt(elf->extab_words, ARM_ELF_WORDS_MAX);
    elf->extab[elf->extab_words] = word;
    return elf->extab_words++;
}

size_t arm_elf_extab_routine(struct arm_elf *elf, uint32_t routine)
{
    return arm_elf_extab_word(elf, prel31_to(routine, elf->extab_vaddr + 4 * (uint32_t)elf->extab_words));
}

struct part {
    uint32_t name, type, section_flags, vaddr, offset, size;
    const void *contents; // NULL: zeros
};

static void put_part(uint8_t *file, unsigned index, const struct part *part)
{
    bool text = part->section_flags & SHF_EXECINSTR;
    const Elf32_Phdr segment = {.p_type = PT_LOAD,
                                .p_offset = part->offset,
                                .p_vaddr = part->vaddr,
                                .p_paddr = part->vaddr,
                                .p_filesz = part->size,
                                .p_memsz = part->size,
                                .p_flags = text ? PF_R | PF_X : PF_R,
                                .p_align = 4};
    const Elf32_Shdr section = {.sh_name = part->name,
                                .sh_type = part->type,
                                .sh_flags = part->section_flags,
                                .sh_addr = part->vaddr,
                                .sh_offset = part->offset,
                                .sh_size = part->size,
                                .sh_addralign = 4};
    memcpy(file + PROGRAM_HEADERS_AT + index * sizeof segment, &segment, sizeof segment);
    memcpy(file + SECTION_HEADERS_AT + (index + 1) * sizeof section, &section, sizeof section);
    if (part->contents)
        memcpy(file + part->offset, part->contents, part->size);
}

static void put_headers(uint8_t *file, const struct part *index)
{
    const Elf32_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
                               .e_type = ET_DYN,
                               .e_machine = EM_ARM,
                               .e_version = EV_CURRENT,
                               .e_phoff = PROGRAM_HEADERS_AT,
                               .e_shoff = SECTION_HEADERS_AT,
                               .e_flags = EF_ARM_EABI_VER5,
                               .e_ehsize = sizeof(Elf32_Ehdr),
                               .e_phentsize = sizeof(Elf32_Phdr),
                               .e_phnum = PROGRAM_HEADERS,
                               .e_shentsize = sizeof(Elf32_Shdr),
                               .e_shnum = SECTION_HEADERS,
                               .e_shstrndx = SECTION_HEADERS - 1};
    const Elf32_Phdr exidx = {.p_type = PT_ARM_EXIDX,
                              .p_offset = index->offset,
                              .p_vaddr = index->vaddr,
                              .p_filesz = index->size,
                              .p_memsz = index->size,
                              .p_flags = PF_R,
                              .p_align = 4};
    const Elf32_Shdr strings = {.sh_name = NAME_SHSTRTAB,
                                .sh_type = SHT_STRTAB,
                                .sh_offset = NAMES_AT,
                                .sh_size = sizeof names,
                                .sh_addralign = 1};
    memcpy(file, &header, sizeof header);
    memcpy(file + PROGRAM_HEADERS_AT + (PROGRAM_HEADERS - 1) * sizeof exidx, &exidx, sizeof exidx);
    memcpy(file + SECTION_HEADERS_AT + (SECTION_HEADERS - 1) * sizeof strings, &strings, sizeof strings);
    memcpy(file + NAMES_AT, names, sizeof names);
}

struct input_image *arm_elf_open(const struct arm_elf *elf)
{
    uint32_t text_bytes[2];
    for (unsigned i = 0; i < 2; i++)
        text_bytes[i] = (uint32_t)(elf->text[i].end - elf->text[i].start);
    uint32_t extab_bytes = 4 * (uint32_t)elf->extab_words, exidx_bytes = 4 * (uint32_t)elf->exidx_words;
    uint32_t text2_at = TEXT_AT + ((text_bytes[0] + 3) & ~UINT32_C(3));
    uint32_t extab_at = text2_at + ((text_bytes[1] + 3) & ~UINT32_C(3));
    uint32_t exidx_at = extab_at + extab_bytes;
    const uint32_t code = SHF_ALLOC | SHF_EXECINSTR;
    const struct part parts[] = {
        {NAME_TEXT, SHT_PROGBITS, code, (uint32_t)elf->text[0].start, TEXT_AT, text_bytes[0], NULL},
        {NAME_TEXT2, SHT_PROGBITS, code, (uint32_t)elf->text[1].start, text2_at, text_bytes[1], NULL},
        {NAME_EXTAB, SHT_PROGBITS, SHF_ALLOC, elf->extab_vaddr, extab_at, extab_bytes, elf->extab},
        {NAME_EXIDX, SHT_ARM_EXIDX, SHF_ALLOC, elf->exidx_vaddr, exidx_at, exidx_bytes, elf->exidx},
    };
    size_t file_bytes = exidx_at + exidx_bytes;
    uint8_t *file = calloc(1, file_bytes);
    ck_assert_ptr_nonnull(file);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        put_part(file, i, &parts[i]);
    put_headers(file, &parts[3]);

    struct input_image *image = NULL;
    struct base_error error = {.reason = BASE_OK};
    struct input_image_options options = {.debug_root = NULL};
    char text[256];
    int result = input_image_open_memory((struct base_bytes){file, file_bytes}, "arm", &options, &image, &error);
    free(file);
    ck_assert_msg(result == 0, "%s", base_error_text(&error, text, sizeof text));
    return image;
}

const struct input_frame_section *arm_elf_index(const struct input_image *image)
{
    for (unsigned i = 0; i < image->frame_count; i++)
        if (image->frame[i].kind == INPUT_FRAME_EXIDX)
            return &image->frame[i];
    ck_abort_msg("the image has no exception index");
    return NULL;
}
