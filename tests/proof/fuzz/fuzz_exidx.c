// SPDX-License-Identifier: Apache-2.0
// .ARM.exidx and what it points to. The input is the contents of one segment: its first two bytes say how many index
// entries follow them, and the rest is code and .ARM.extab.
#include <elf.h>

#include "tests/proof/fuzz/fuzz.h"

enum { VADDR = 0x10000, INDEX_AT = 4 };

struct file {
    Elf32_Ehdr header;
    Elf32_Phdr segments[2];
};

int fuzz_exidx(const uint8_t *data, size_t size)
{
    if (size < INDEX_AT)
        return 0;
    uint32_t index_bytes = 8 * (data[0] | (uint32_t)data[1] << 8);
    if (index_bytes > size - INDEX_AT)
        index_bytes = (uint32_t)(size - INDEX_AT) & ~7u;
    uint8_t *bytes = malloc(sizeof(struct file) + size);
    fuzz_require(bytes != NULL);
    struct file file = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
                                   .e_type = ET_DYN,
                                   .e_machine = EM_ARM,
                                   .e_version = EV_CURRENT,
                                   .e_phoff = offsetof(struct file, segments),
                                   .e_ehsize = sizeof(Elf32_Ehdr),
                                   .e_phentsize = sizeof(Elf32_Phdr),
                                   .e_phnum = 2}};
    uint32_t file_offset = sizeof file;
    file.segments[0] = (Elf32_Phdr){.p_type = PT_LOAD,
                                    .p_offset = file_offset,
                                    .p_vaddr = VADDR,
                                    .p_filesz = (Elf32_Word)size,
                                    .p_memsz = (Elf32_Word)size,
                                    .p_flags = PF_R | PF_X};
    file.segments[1] = (Elf32_Phdr){.p_type = PT_ARM_EXIDX,
                                    .p_offset = file_offset + INDEX_AT,
                                    .p_vaddr = VADDR + INDEX_AT,
                                    .p_filesz = index_bytes,
                                    .p_memsz = index_bytes,
                                    .p_flags = PF_R};
    memcpy(bytes, &file, sizeof file);
    memcpy(bytes + sizeof file, data, size);
    struct base_error error = {0};
    struct input_image_options options = {0};
    struct input_image *image;
    if (input_image_open_memory((struct base_bytes){bytes, sizeof file + size}, "fuzz", &options, &image, &error) ==
        0) {
        fuzz_compile(image);
        input_image_close(image);
    } else {
        fuzz_require(error.reason != BASE_OK);
    }
    free(bytes);
    return 0;
}
