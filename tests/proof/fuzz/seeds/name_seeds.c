// SPDX-License-Identifier: Apache-2.0
// Files with symbols of every kind: sized and not, local and exported, mangled in each way, and slots that lead to
// another module. (tests/proof/fuzz/run adds files of compilers, with debug information.)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/elf_builder.h"

enum { TEXT = 0x10000, PLT = 0x11000, SLOTS = 0x12000 };

static void put_symbol(struct build_buffer *to, bool is_64, uint32_t name, uint64_t value, uint64_t size, uint8_t info,
                       uint16_t section)
{
    if (is_64) {
        const Elf64_Sym symbol = {name, info, 0, section, value, size};
        build_add(to, &symbol, sizeof symbol);
    } else {
        const Elf32_Sym symbol = {name, (uint32_t)value, (uint32_t)size, info, 0, section};
        build_add(to, &symbol, sizeof symbol);
    }
}

static void put_slot(struct build_buffer *to, bool is_64, uint64_t address, uint32_t symbol)
{
    if (is_64) {
        const Elf64_Rela slot = {address, ELF64_R_INFO((uint64_t)symbol, 7), 0};
        build_add(to, &slot, sizeof slot);
    } else {
        const Elf32_Rel slot = {(uint32_t)address, ELF32_R_INFO(symbol, 22)};
        build_add(to, &slot, sizeof slot);
    }
}

void seeds_link_section(struct build_buffer *file, bool is_64, unsigned section, unsigned link)
{
    if (is_64) {
        Elf64_Ehdr header;
        memcpy(&header, file->data, sizeof header);
        Elf64_Word value = link;
        memcpy(file->data + header.e_shoff + section * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), &value,
               sizeof value);
    } else {
        Elf32_Ehdr header;
        memcpy(&header, file->data, sizeof header);
        Elf32_Word value = link;
        memcpy(file->data + header.e_shoff + section * sizeof(Elf32_Shdr) + offsetof(Elf32_Shdr, sh_link), &value,
               sizeof value);
    }
}

// Stripped, with an exception index: it says where functions begin.
static void exidx_seed(const struct arch *arch)
{
    enum { INDEX = 0x14000, ENTRIES = 4 };
    uint32_t index[2 * ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
        index[2 * i] = (TEXT + i * 0x40 - (INDEX + 8 * i)) & 0x7fffffff;
        index[2 * i + 1] = i == 2 ? 1 : 0x80a8b0b0; // CANTUNWIND; pop {r4, lr}
    }
    const struct build_elf spec = {
        .machine = arch->elf_machine,
        .is_32 = true,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, NULL, 0x400, 16},
                     {".ARM.exidx", SHT_ARM_EXIDX, SHF_ALLOC, INDEX, index, sizeof index, 4}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                     {PT_LOAD, PF_R, ".ARM.exidx", 0},
                     {PT_ARM_EXIDX, PF_R, ".ARM.exidx", 0}}};
    struct build_buffer file = build_elf(&spec);
    write_seed("names", "exidx", 3, file.data, file.size);
    write_seed("elf", "exidx", -1, file.data, file.size);
    free(file.data);
}

void name_seeds(const struct arch *arch)
{
    static const char strings[] = "\0_ZN3foo3barEv\0_RNvC6_123foo3bar\0main\0$x\0__start\0imported";
    static const uint32_t at[] = {1, 15, 33, 38, 41, 49};
    static const uint8_t ways[] = {3, 7, 32 | 128, 64 | 3, 16, 8}; // as fuzz_names.c has them
    enum { WAYS = sizeof ways };
    static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1};
    bool is_64 = arch->word_bytes == 8;
    struct build_buffer symbols = {0}, slots = {0};
    put_symbol(&symbols, is_64, 0, 0, 0, 0, 0);
    for (unsigned i = 0; i < 5; i++)
        put_symbol(&symbols, is_64, at[i], TEXT + i * 0x40, i % 2 ? 0 : 0x40,
                   (uint8_t)ELF64_ST_INFO(i % 3 ? STB_GLOBAL : STB_LOCAL, i == 3 ? STT_NOTYPE : STT_FUNC), 1);
    put_symbol(&symbols, is_64, at[5], 0, 0, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0);
    for (uint32_t i = 0; i < 4; i++)
        put_slot(&slots, is_64, SLOTS + 24 + i * arch->word_bytes, i == 3 ? 9999 : 6);
    uint8_t code[0x80] = {0xff, 0x25, 0xfa, 0x0f, 0, 0}; // jmp *SLOTS-PLT-6(%rip)
    for (size_t i = 16; i + 16 <= sizeof code; i += 16)
        memcpy(code + i, "\xff\x25\x02\x10\0\0\x68\0\0\0\0\xe9\0\0\0\0", 16);
    for (int is_dynamic = 0; is_dynamic < 2; is_dynamic++) {
        const struct build_elf spec = {
            .machine = arch->elf_machine,
            .is_32 = !is_64,
            .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, NULL, 0x400, 16},
                         {".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PLT, code, sizeof code, 16},
                         {is_dynamic ? ".dynsym" : ".symtab", is_dynamic ? SHT_DYNSYM : SHT_SYMTAB, SHF_ALLOC, 0x1000,
                          symbols.data, symbols.size, 8},
                         {is_dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, SHF_ALLOC, 0x2000, strings, sizeof strings,
                          1},
                         {is_64 ? ".rela.plt" : ".rel.plt", is_64 ? SHT_RELA : SHT_REL, SHF_ALLOC, 0x3000, slots.data,
                          slots.size, 8},
                         {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x4000, note, sizeof note, 4},
                         {".got.plt", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, SLOTS, code, 64, 8}},
            .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                         {PT_LOAD, PF_R | PF_X, ".plt", 0},
                         {PT_LOAD, PF_R | PF_W, ".got.plt", 0}}};
        struct build_buffer file = build_elf(&spec);
        seeds_link_section(&file, is_64, 3, 4);
        seeds_link_section(&file, is_64, 5, 3);
        char name[64];
        snprintf(name, sizeof name, "%s-%s", arch->name, is_dynamic ? "dynamic" : "static");
        for (int way = 0; way < WAYS; way++) {
            char with[96];
            snprintf(with, sizeof with, "%s-%d", name, way);
            write_seed("names", with, ways[way], file.data, file.size);
        }
        free(file.data);
    }
    free(symbols.data);
    free(slots.data);
    if (arch->has_thumb)
        exidx_seed(arch);
}
