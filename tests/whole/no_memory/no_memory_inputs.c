// SPDX-License-Identifier: Apache-2.0
// Files in which every part counts: each kind of frame section describes code that no other one does, so that a table
// that was made without it is another one. no_memory_inputs FOLDER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/frame_asm.h"
#include "tests/support/oat_writer.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
    TEXT_BYTES = 0x4000,
    EXIDX_VADDR = 0x200000,
    EXIDX_ENTRIES = 24,
    FUNCTIONS = 40, // of each section
    FUNCTION_BYTES = 0x50,
};

static const uint8_t build_id[] = {4,   0,   0,   0, 4,    0,    0,    0, NT_GNU_BUILD_ID, 0, 0, 0,
                                   'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1};
static const char *folder;

static void put(const char *name, struct build_buffer file)
{
    free(build_file(folder, name, file.data, file.size));
    free(file.data);
}

// Functions `first`, first + 4, first + 8 and so on; each has its own frame, the last three lie in one another.
static struct build_buffer section(const struct arch *arch, enum input_frame_kind kind, unsigned first)
{
    struct frame_asm a = frame_asm(arch, kind);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    for (unsigned i = first; i < FUNCTIONS * 4; i += 4) {
        const uint8_t program[] = {CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, (uint8_t)(16 + i % 100),
                                   CFA_ADVANCE_LOC | 8, CFA_DEF_CFA_OFFSET, 8};
        unsigned nested = i + 12 >= FUNCTIONS * 4 ? 3 : 1;
        struct frame_fde fde = {.cie = &cie,
                                .start = i * FUNCTION_BYTES,
                                .size = nested * FUNCTION_BYTES,
                                .program = program,
                                .program_size = sizeof program};
        frame_add_fde(&a, &fde);
    }
    return a.bytes;
}

static struct build_elf spec_of(const struct arch *arch, const struct build_section *more, unsigned count)
{
    static const uint8_t code[TEXT_BYTES] = {0xc3};
    struct build_elf spec = {
        .is_32 = arch->word_bytes == 4,
        .machine = arch->elf_machine,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, code, sizeof code, 16}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}},
    };
    memcpy(&spec.sections[1], more, count * sizeof *more);
    return spec;
}

static struct build_buffer compressed(uint32_t method, struct build_buffer plain)
{
    struct build_buffer packed = (method == ELFCOMPRESS_ZLIB ? build_zlib : build_zstd)(plain.data, plain.size);
    struct build_buffer made = build_compressed64(method, plain.size, &packed);
    free(packed.data);
    free(plain.data);
    return made;
}

static struct build_buffer rich(const struct arch *arch)
{
    struct build_buffer inner = section(arch, INPUT_FRAME_DEBUG, 2);
    const struct build_section inner_section = {".debug_frame", SHT_PROGBITS, 0, 0, inner.data, inner.size, 8};
    struct build_elf spec = spec_of(arch, &inner_section, 1);
    struct build_buffer inner_elf = build_elf(&spec), xz = build_xz(inner_elf.data, inner_elf.size);
    struct build_buffer eh = section(arch, INPUT_FRAME_EH, 0);
    struct build_buffer debug = compressed(ELFCOMPRESS_ZLIB, section(arch, INPUT_FRAME_DEBUG, 1));
    const struct build_section sections[] = {
        {".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAME_VADDR, eh.data, eh.size, 8},
        {".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, debug.data, debug.size, 8},
        {".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1},
        {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x200, build_id, sizeof build_id, 4},
    };
    spec = spec_of(arch, sections, sizeof sections / sizeof *sections);
    spec.segments[1] = (struct build_segment){PT_LOAD, PF_R, ".eh_frame", 0};
    struct build_buffer made = build_elf(&spec);
    free(inner.data);
    free(inner_elf.data);
    free(xz.data);
    free(eh.data);
    free(debug.data);
    return made;
}

static struct build_buffer debug_file(const struct arch *arch)
{
    struct build_buffer debug = compressed(ELFCOMPRESS_ZSTD, section(arch, INPUT_FRAME_DEBUG, 3));
    const struct build_section sections[] = {
        {".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, debug.data, debug.size, 8},
        {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x200, build_id, sizeof build_id, 4},
    };
    const struct build_elf spec = spec_of(arch, sections, 2);
    struct build_buffer made = build_elf(&spec);
    free(debug.data);
    return made;
}

// An index whose entries say, in their own words, to pop different numbers of registers.
static struct build_buffer arm(const struct arch *arch)
{
    struct build_buffer index = {0};
    for (unsigned i = 0; i < EXIDX_ENTRIES; i++) {
        uint32_t place = EXIDX_VADDR + 8 * i, start = FRAME_TEXT + 0x80 * i;
        const uint32_t entry[] = {(start - place) & UINT32_C(0x7fffffff), UINT32_C(0x80a8b0b0) | (i % 4) << 16};
        build_add(&index, entry, sizeof entry);
    }
    const struct build_section section_of = {".ARM.exidx", SHT_ARM_EXIDX, SHF_ALLOC, EXIDX_VADDR,
                                             index.data,   index.size,    4};
    struct build_elf spec = spec_of(arch, &section_of, 1);
    spec.segments[1] = (struct build_segment){PT_LOAD, PF_R, ".ARM.exidx", 0};
    struct build_buffer made = build_elf(&spec);
    free(index.data);
    return made;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    const struct arch *x86_64 = arch_by_elf_machine(EM_X86_64);
    struct build_buffer file = rich(x86_64);
    const struct build_member member = {"lib/x86_64/librich.so", file.data, file.size, 0};
    put("packed.apk", build_zip(&member, 1, ""));
    free(build_file(folder, "folder/one.so", file.data, file.size));
    put("rich.so", file);
    put("folder/two.so", arm(arch_by_elf_machine(EM_ARM)));
    put("arm.so", arm(arch_by_elf_machine(EM_ARM)));
    put("debug/.build-id/ab/cdef01.debug", debug_file(x86_64));
    struct oat_spec oat;
    oat_spec_init(&oat, x86_64, 195);
    oat.frames = OAT_XZ;
    put("method.oat", oat_write(&oat));
    return 0;
}
