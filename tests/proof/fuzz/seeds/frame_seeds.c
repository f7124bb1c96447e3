// SPDX-License-Identifier: Apache-2.0
// Frame programs: of most instructions, and of the expressions that compilers write, as sections of their own and
// inside ELF files, archives and packed sections.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/frame_asm.h"

static void cfi_seed(const struct frame_asm *a, const char *name)
{
    const uint8_t head[2] = {(uint8_t)(a->arch->id - 1), a->kind == INPUT_FRAME_DEBUG};
    struct build_buffer section = {0};
    build_add(&section, head, sizeof head);
    build_add(&section, a->bytes.data, a->bytes.size);
    write_seed("cfi", name, -1, section.data, section.size);
    free(section.data);
}

static void packed_seeds(const struct arch *arch, const struct build_buffer *file, char name[64])
{
    struct build_buffer xz = build_xz(file->data, file->size);
    write_seed("xz", name, 0, xz.data, xz.size);
    const struct build_elf with_debugdata = {
        .machine = arch->elf_machine,
        .is_32 = arch->word_bytes == 4,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, 0x400, 16},
                     {".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}}};
    struct build_buffer outer = build_elf(&with_debugdata);
    snprintf(name + strlen(name), 64 - strlen(name), "-xz");
    write_seed("elf", name, -1, outer.data, outer.size);
    const struct build_member members[] = {{"lib/a.so", file->data, file->size, 0},
                                           {"lib/b.so", outer.data, outer.size, 0},
                                           {"lib/c.so", outer.data, outer.size, 8}};
    struct build_buffer zip = build_zip(members, 3, "seed");
    write_seed("apk", name, -1, zip.data, zip.size);
    write_seed("names", name, 1 | 2 | 16, zip.data, zip.size); // a library in an archive
    free(xz.data);
    free(outer.data);
    free(zip.data);
}

static void most_instructions(const struct arch *arch, enum input_frame_kind kind, uint8_t version, bool dwarf64)
{
    struct frame_asm a = frame_asm(arch, kind);
    struct frame_cie cie = {.version = version, .dwarf64 = dwarf64, .pointer_encoding = PE_PCREL | PE_SDATA4};
    if (kind == INPUT_FRAME_EH)
        cie.augmentation = "zLRS";
    else
        cie.pointer_encoding = PE_ABSPTR;
    frame_add_cie(&a, &cie);
    frame_add_fde(&a,
                  &(struct frame_fde){.cie = &cie,
                                      .size = 0x80,
                                      .dwarf64 = dwarf64,
                                      .program = BYTES(CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16, CFA_OFFSET | 6, 2,
                                                       CFA_ADVANCE_LOC1, 4, CFA_DEF_CFA_REGISTER, 6, CFA_REMEMBER_STATE,
                                                       CFA_ADVANCE_LOC2, 16, 0, CFA_DEF_CFA, 7, 8, CFA_RESTORE | 6,
                                                       CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE, CFA_EXPRESSION, 3, 2,
                                                       OP_BREG0 + 6, 0x78, CFA_DEF_CFA_EXPRESSION, 5, OP_BREG0 + 6,
                                                       0x78, OP_DEREF, OP_PLUS_UCONST, 8)});
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x40, .size = 0x20, .dwarf64 = dwarf64});
    char name[64];
    snprintf(name, sizeof name, "%s-%s-%u%s", arch->name, kind == INPUT_FRAME_EH ? "eh" : "debug", version,
             dwarf64 ? "-64" : "");
    cfi_seed(&a, name);
    struct build_buffer file = frame_elf(&a);
    write_seed("elf", name, -1, file.data, file.size);
    write_seed("jit_blob", name, -1, file.data, file.size);
    packed_seeds(arch, &file, name);
    free(file.data);
    frame_free(&a);
}

// One of each shape that is read as a rule: PLTs, realigned and indexed stacks, frames with room for vectors.
static void expressions(const struct arch *arch)
{
    enum { AARCH64_PC_MASK = 15 };
    const uint8_t sp = (uint8_t)(OP_BREG0 + arch->sp_reg), ra = (uint8_t)(OP_BREG0 + arch->ra_reg % 32);
    const struct {
        const char *name;
        const uint8_t *program;
        size_t size;
    } all[] = {
        {"plt", BYTES(CFA_DEF_CFA_EXPRESSION, 11, sp, 8, ra, 0, OP_LIT0 + AARCH64_PC_MASK, OP_AND, OP_LIT0 + 11, OP_GE,
                      OP_LIT0 + 3, OP_SHL, OP_PLUS)},
        {"indexed", BYTES(CFA_DEF_CFA_EXPRESSION, 8, sp, 8, OP_BREG0, 0, OP_LIT0 + 3, OP_SHL, OP_PLUS, OP_DEREF)},
        {"factor", BYTES(CFA_DEF_CFA_EXPRESSION, 10, OP_BREG0, 0, OP_LIT0 + 8, OP_MUL, sp, 0x78, OP_PLUS, OP_DEREF,
                         OP_PLUS_UCONST, 8)},
        {"vectors", BYTES(CFA_DEF_CFA_EXPRESSION, 13, sp, 0, OP_CONSTS, 0xb0, 1, OP_PLUS, OP_CONSTS, 2, OP_BREGX, 0xa2,
                          0x38, 0, OP_MUL, CFA_DEF_CFA_EXPRESSION, 10, OP_BREGX, 0xa2, 0x38, 0, OP_CONSTS, 0x7c, OP_MUL,
                          sp, 0x70, OP_PLUS)},
        {"aligned",
         BYTES(CFA_EXPRESSION, 6, 7, OP_LIT0 + 8, OP_MINUS, OP_CONST1S, 0xc0, OP_AND, OP_LIT0 + 16, OP_MINUS)},
        {"constants", BYTES(CFA_DEF_CFA_EXPRESSION, 12, sp, 0, OP_CONST2S, 0xfc, 0xff, OP_MINUS, OP_CONST4U, 8, 0, 0, 0,
                            OP_PLUS, CFA_VAL_EXPRESSION, 6, 3, OP_BREGX, 7, 0)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct frame_asm a = frame_asm(arch, INPUT_FRAME_DEBUG);
        struct frame_cie cie = {.version = 4};
        char name[64];
        frame_add_cie(&a, &cie);
        frame_add_fde(
            &a, &(struct frame_fde){.cie = &cie, .size = 0x40, .program = all[i].program, .program_size = all[i].size});
        snprintf(name, sizeof name, "%s-%s", arch->name, all[i].name);
        cfi_seed(&a, name);
        frame_free(&a);
    }
}

// As libart.so has them: an interpreter of handlers, and where traced methods return to.
static void libart_seed(const struct arch *arch)
{
    static const char names[] = "\0ExecuteMterpImpl\0artMterpAsmInstructionStart\0art_quick_instrumentation_exit";
    static const struct {
        uint32_t name, start, size;
    } symbols[] = {{1, 0, 0x40}, {18, 0x10, 0x10}, {46, 0x50, 0x10}};
    struct frame_asm a = frame_asm(arch, INPUT_FRAME_DEBUG);
    struct frame_cie cie = {.version = 4};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x80});
    struct build_buffer table = {0};
    bool is_64 = arch->word_bytes == 8;
    build_add(&table, NULL, is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    for (size_t i = 0; i < 3; i++) {
        const Elf64_Sym wide = {
            symbols[i].name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, FRAME_TEXT + symbols[i].start, symbols[i].size};
        const Elf32_Sym narrow = {symbols[i].name, FRAME_TEXT + symbols[i].start, symbols[i].size, wide.st_info, 0, 1};
        build_add(&table, is_64 ? (const void *)&wide : &narrow, is_64 ? sizeof wide : sizeof narrow);
    }
    const struct build_elf spec = {
        .machine = arch->elf_machine,
        .is_32 = !is_64,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, 0x400, 16},
                     {".symtab", SHT_SYMTAB, 0, 0, table.data, table.size, 8},
                     {".strtab", SHT_STRTAB, 0, 0, names, sizeof names, 1},
                     {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}}};
    struct build_buffer file = build_elf(&spec);
    seeds_link_section(&file, is_64, 2, 3);
    char name[64];
    snprintf(name, sizeof name, "%s-libart", arch->name);
    write_seed("elf", name, -1, file.data, file.size);
    free(file.data);
    free(table.data);
    frame_free(&a);
}

void frame_seeds(const struct arch *arch)
{
    most_instructions(arch, INPUT_FRAME_EH, 1, false);
    most_instructions(arch, INPUT_FRAME_DEBUG, 4, false);
    most_instructions(arch, INPUT_FRAME_DEBUG, 3, true);
    expressions(arch);
    libart_seed(arch);
}
