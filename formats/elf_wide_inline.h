// SPDX-License-Identifier: Apache-2.0
// What ELF files of either class hold, as 64-bit structures: 32-bit ones have the same fields, narrower and in part in
// another order. The bytes need not be aligned.
#ifndef FORMATS_ELF_WIDE_INLINE_H
#define FORMATS_ELF_WIDE_INLINE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline size_t elf_header_bytes(bool is_64)
{
    return is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}
static inline size_t elf_section_bytes(bool is_64)
{
    return is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}
static inline size_t elf_segment_bytes(bool is_64)
{
    return is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}
static inline size_t elf_symbol_bytes(bool is_64)
{
    return is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static inline Elf64_Ehdr elf_wide_header(const void *at, bool is_64)
{
    Elf64_Ehdr wide;
    Elf32_Ehdr narrow;
    memcpy(is_64 ? (void *)&wide : (void *)&narrow, at, elf_header_bytes(is_64));
    if (is_64)
        return wide;
    wide = (Elf64_Ehdr){.e_type = narrow.e_type,
                        .e_machine = narrow.e_machine,
                        .e_version = narrow.e_version,
                        .e_entry = narrow.e_entry,
                        .e_phoff = narrow.e_phoff,
                        .e_shoff = narrow.e_shoff,
                        .e_flags = narrow.e_flags,
                        .e_ehsize = narrow.e_ehsize,
                        .e_phentsize = narrow.e_phentsize,
                        .e_phnum = narrow.e_phnum,
                        .e_shentsize = narrow.e_shentsize,
                        .e_shnum = narrow.e_shnum,
                        .e_shstrndx = narrow.e_shstrndx};
    memcpy(wide.e_ident, narrow.e_ident, EI_NIDENT);
    return wide;
}

static inline Elf64_Shdr elf_wide_section(const void *at, bool is_64)
{
    Elf64_Shdr wide;
    Elf32_Shdr narrow;
    memcpy(is_64 ? (void *)&wide : (void *)&narrow, at, elf_section_bytes(is_64));
    return is_64 ? wide
                 : (Elf64_Shdr){.sh_name = narrow.sh_name,
                                .sh_type = narrow.sh_type,
                                .sh_flags = narrow.sh_flags,
                                .sh_addr = narrow.sh_addr,
                                .sh_offset = narrow.sh_offset,
                                .sh_size = narrow.sh_size,
                                .sh_link = narrow.sh_link,
                                .sh_info = narrow.sh_info,
                                .sh_addralign = narrow.sh_addralign,
                                .sh_entsize = narrow.sh_entsize};
}

static inline Elf64_Phdr elf_wide_segment(const void *at, bool is_64)
{
    Elf64_Phdr wide;
    Elf32_Phdr narrow;
    memcpy(is_64 ? (void *)&wide : (void *)&narrow, at, elf_segment_bytes(is_64));
    return is_64 ? wide
                 : (Elf64_Phdr){.p_type = narrow.p_type,
                                .p_flags = narrow.p_flags,
                                .p_offset = narrow.p_offset,
                                .p_vaddr = narrow.p_vaddr,
                                .p_paddr = narrow.p_paddr,
                                .p_filesz = narrow.p_filesz,
                                .p_memsz = narrow.p_memsz,
                                .p_align = narrow.p_align};
}

static inline Elf64_Sym elf_wide_symbol(const void *at, bool is_64)
{
    Elf64_Sym wide;
    Elf32_Sym narrow;
    memcpy(is_64 ? (void *)&wide : (void *)&narrow, at, elf_symbol_bytes(is_64));
    return is_64 ? wide
                 : (Elf64_Sym){.st_name = narrow.st_name,
                               .st_info = narrow.st_info,
                               .st_other = narrow.st_other,
                               .st_shndx = narrow.st_shndx,
                               .st_value = narrow.st_value,
                               .st_size = narrow.st_size};
}

#endif
