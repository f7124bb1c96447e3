// SPDX-License-Identifier: Apache-2.0
#include "tests/support/probe_object.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING, CODE, RELOCATIONS, MAPS, RECORDS, SYMBOLS, NAMES, SECTIONS };

static uint32_t add_name(struct build_buffer *names, const char *name)
{
    return (uint32_t)build_add(names, name, strlen(name) + 1);
}

static uint32_t code_count(const struct probe_object_spec *spec)
{
    static const struct qut_probe_instruction nothing;
    uint32_t count = PROBE_OBJECT_CODE_MAX;
    while (count && memcmp(&spec->code[count - 1], &nothing, sizeof nothing) == 0)
        count--;
    return count;
}

static Elf64_Sym symbol_of(uint32_t name, int type, uint16_t section, uint64_t at, uint64_t size_bytes)
{
    return (Elf64_Sym){.st_name = name,
                       .st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, type),
                       .st_shndx = section,
                       .st_value = at,
                       .st_size = size_bytes};
}

static void add_section(struct build_buffer *file, Elf64_Shdr *section, uint32_t type, const void *data, size_t size)
{
    build_align(file, 8);
    section->sh_type = type;
    section->sh_size = size;
    section->sh_addralign = 8;
    section->sh_offset = build_add(file, data, size);
}

struct build_buffer probe_object_write(const struct probe_object_spec *spec)
{
    struct build_buffer file = {NULL, 0}, names = {NULL, 0};
    Elf64_Sym symbols[PROBE_OBJECT_SYMBOLS] = {{0}};
    Elf64_Rel relocations[PROBE_OBJECT_RELOCATIONS_MAX];
    Elf64_Shdr sections[SECTIONS] = {{0}};
    static const char *const fixed[SECTIONS] = {NULL, NULL, ".rel", "qut.maps", "qut.records", ".symtab", ".strtab"};
    const uint32_t count = code_count(spec);
    const size_t map_bytes = sizeof *spec->maps;
    size_t relocation_count = 0;
    add_name(&names, "");
    for (unsigned i = 1; i < SECTIONS; i++)
        sections[i].sh_name = add_name(&names, fixed[i] ? fixed[i] : spec->section);
    symbols[PROBE_OBJECT_FUNCTION] =
        symbol_of(add_name(&names, "called"), STT_FUNC, CODE, 0, count * sizeof *spec->code);
    for (uint32_t i = 0; i < spec->map_count; i++) {
        const char name[] = {'m', 'a', 'p', (char)('0' + i), 0};
        symbols[PROBE_OBJECT_MAP + i] = symbol_of(add_name(&names, name), STT_OBJECT, MAPS, i * map_bytes, map_bytes);
    }
    symbols[PROBE_OBJECT_RECORD] = symbol_of(add_name(&names, "said"), STT_OBJECT, RECORDS, 0, sizeof spec->record);
    for (; relocation_count < PROBE_OBJECT_RELOCATIONS_MAX && spec->relocations[relocation_count].type;
         relocation_count++) {
        const struct probe_object_relocation *one = &spec->relocations[relocation_count];
        relocations[relocation_count] =
            (Elf64_Rel){one->instruction * sizeof *spec->code, ELF64_R_INFO((uint64_t)one->symbol, one->type)};
    }
    build_add(&file, NULL, sizeof(Elf64_Ehdr));
    add_section(&file, &sections[CODE], SHT_PROGBITS, spec->code, count * sizeof *spec->code);
    add_section(&file, &sections[RELOCATIONS], SHT_REL, relocations, relocation_count * sizeof *relocations);
    add_section(&file, &sections[MAPS], SHT_PROGBITS, spec->maps, spec->map_count * map_bytes);
    add_section(&file, &sections[RECORDS], SHT_PROGBITS, &spec->record, sizeof spec->record);
    add_section(&file, &sections[SYMBOLS], SHT_SYMTAB, symbols, sizeof symbols);
    add_section(&file, &sections[NAMES], SHT_STRTAB, names.data, names.size);
    sections[CODE].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    sections[RELOCATIONS].sh_link = SYMBOLS;
    sections[RELOCATIONS].sh_info = CODE;
    sections[SYMBOLS].sh_link = NAMES;
    build_align(&file, 8);
    const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                               .e_type = spec->type ? spec->type : ET_REL,
                               .e_machine = spec->machine ? spec->machine : EM_BPF,
                               .e_version = EV_CURRENT,
                               .e_shoff = file.size,
                               .e_ehsize = sizeof header,
                               .e_shentsize = sizeof *sections,
                               .e_shnum = SECTIONS,
                               .e_shstrndx = NAMES};
    build_add(&file, sections, sizeof sections);
    memcpy(file.data, &header, sizeof header);
    free(names.data);
    return file;
}

void probe_object_sample(struct probe_object_spec *spec)
{
    *spec = (struct probe_object_spec){.section = "entry:lib*!f, timer:1s",
                                       .code = {{0xb7, 2, 0, 7},            // r2 = 7
                                                {0x7b, 10 | 2 << 4, -8, 0}, // the key
                                                {0xbf, 2 | 10 << 4, 0, 0},  // r2 = its address
                                                {0x07, 2, 0, -8},           //
                                                {0x18, 1, 0, 0},            // r1 = map1
                                                {0, 0, 0, 0},               //
                                                {0xb7, 3, 0, 1},            // r3 = 1
                                                {0x85, 0, 0, QUT_PROBE_AGGREGATE},
                                                {0xbf, 2 | 10 << 4, 0, 0},    // r2 = the same
                                                {0x07, 2, 0, -8},             //
                                                {0x18, 1, 0, 0},              // r1 = the record
                                                {0, 0, 0, 0},                 //
                                                {0x85, 0, 0, QUT_PROBE_EMIT}, //
                                                {0xb7, 0, 0, 0},              //
                                                {0x95, 0, 0, 0}},
                                       .relocations = {{4, 1, PROBE_OBJECT_MAP + 1}, {10, 1, PROBE_OBJECT_RECORD}},
                                       .maps = {{.shape = QUT_PROBE_MAP_LHIST, .low = 0, .step = 10, .steps = 5},
                                                {.shape = QUT_PROBE_MAP_COUNT, .parts = {QUT_PROBE_NUMBER}}},
                                       .map_count = 2,
                                       .record = {{QUT_PROBE_NUMBER}, "seven: %d\n"}};
}
