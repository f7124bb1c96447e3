// SPDX-License-Identifier: Apache-2.0
// Cores and snapshots of a small process: one library with frame programs, and a stack whose words lead into it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/core_file.h"
#include "tests/support/frame_asm.h"
#include "tests/support/oat_writer.h"

enum { LIBRARY = 0x100000, STACK = 0x7000, STACK_BYTES = 0x400, ARCHIVE_OFFSET = 0x1000 };

// As core_file.h has it, thread i has its pc at 0x1000 + i: the library's code is there if it is mapped at 0x1000 less
// where its code begins; that is not a page, so the seeds' pcs are what a stack leads to.
static struct build_buffer library(const struct arch *arch)
{
    struct frame_asm a = frame_asm(arch, INPUT_FRAME_EH);
    struct frame_cie cie = {.augmentation = "zR", .pointer_encoding = PE_PCREL | PE_SDATA4};
    a.by_segment = true;
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie,
                                          .size = 0x80,
                                          .program = BYTES(CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16,
                                                           CFA_ADVANCE_LOC | 8, CFA_DEF_CFA_REGISTER, 6)});
    struct build_buffer file = frame_elf(&a);
    frame_free(&a);
    return file;
}

static void fill_stack(uint8_t stack[STACK_BYTES], const struct arch *arch)
{
    for (size_t at = 0; at < STACK_BYTES; at += arch->word_bytes) {
        uint64_t word = at / arch->word_bytes % 2 ? LIBRARY + FRAME_TEXT + at % 64 : STACK + at + 64;
        memcpy(stack + at, &word, arch->word_bytes);
    }
}

// A library that says in memory which build it is: its note's address is its place in the file.
static struct build_buffer with_build_id(const struct arch *arch)
{
    static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1};
    enum { SEGMENTS = 3 };
    bool is_32 = arch->word_bytes == 4;
    size_t headers =
        is_32 ? sizeof(Elf32_Ehdr) + SEGMENTS * sizeof(Elf32_Phdr) : sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
    const struct build_elf spec = {
        .machine = arch->elf_machine,
        .is_32 = is_32,
        .sections = {{".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, (headers + 15) & ~(size_t)15, note, sizeof note, 4},
                     {".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, 0x400, 16}},
        .segments = {{PT_LOAD, PF_R, ".note.gnu.build-id", 0},
                     {PT_LOAD, PF_R | PF_X, ".text", 0},
                     {PT_NOTE, PF_R, ".note.gnu.build-id", 0}}};
    struct build_buffer file = build_elf(&spec);
    // Loaded from its first byte on, as linkers have it.
    if (is_32) {
        Elf32_Phdr *load = (void *)(file.data + sizeof(Elf32_Ehdr));
        load->p_offset = load->p_vaddr = 0;
        load->p_filesz = load->p_memsz = (Elf32_Word)file.size;
    } else {
        Elf64_Phdr *load = (void *)(file.data + sizeof(Elf64_Ehdr));
        load->p_offset = load->p_vaddr = 0;
        load->p_filesz = load->p_memsz = file.size;
    }
    return file;
}

// A library inside an archive that says its own name, and by a section which build it is.
static struct build_buffer with_soname(const struct arch *arch)
{
    static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 2};
    static const char strings[] = "\0libinside.so";
    enum { STRINGS = 0x20000, DYNAMIC = 0x21000, WORDS = 6 };
    const uint64_t tags[WORDS] = {DT_STRTAB, STRINGS, DT_SONAME, 1, DT_NULL, 0};
    uint8_t dynamic[WORDS * 8];
    for (size_t i = 0; i < WORDS; i++)
        memcpy(dynamic + i * arch->word_bytes, &tags[i], arch->word_bytes);
    const struct build_elf spec = {
        .machine = arch->elf_machine,
        .is_32 = arch->word_bytes == 4,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, 0x400, 16},
                     {".dynstr", SHT_STRTAB, SHF_ALLOC, STRINGS, strings, sizeof strings, 1},
                     {".dynamic", SHT_DYNAMIC, SHF_ALLOC, DYNAMIC, dynamic, (size_t)WORDS * arch->word_bytes, 8},
                     {".note.gnu.build-id", SHT_NOTE, 0, 0, note, sizeof note, 4}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0x1000},
                     {PT_LOAD, PF_R, ".dynstr", 0},
                     {PT_LOAD, PF_R | PF_W, ".dynamic", 0},
                     {PT_DYNAMIC, PF_R | PF_W, ".dynamic", 0}}};
    struct build_buffer file = build_elf(&spec), archive = {0};
    build_add(&archive, NULL, ARCHIVE_OFFSET);
    build_add(&archive, file.data, file.size);
    free(file.data);
    return archive;
}

static void core_seed(const struct arch *arch, const struct build_buffer *file, const uint8_t *stack, const char *kind)
{
    static struct core_file core;
    const struct core_memory memory[] = {
        {.address = STACK, .size = 0x1000, .bytes = stack, .dumped = STACK_BYTES, .flags = PF_R | PF_W},
        {.address = 0x1000, .size = 0x1000, .flags = PF_R | PF_X, .path = "/lib/a.so", .file_offset = 0x3000},
        {.address = LIBRARY,
         .size = 0x20000,
         .bytes = file->data,
         .dumped = file->size,
         .flags = PF_R | PF_X,
         .path = "/lib/b.so"},
    };
    if (file->size + 4096 > CORE_FILE_MAX)
        abort();
    core_file_make(&core, arch, memory, 3);
    char name[64];
    snprintf(name, sizeof name, "%s-%s", arch->name, kind);
    write_seed("core", name, -1, core.bytes, core.size);
    snprintf(name, sizeof name, "%s-%s-cut", arch->name, kind);
    write_seed("core", name, -1, core.bytes, core.size - file->size / 2);
}

static void snapshot_seed(const struct arch *arch, const struct build_buffer *file, unsigned offset,
                          const uint8_t *stack, const char *kind)
{
    char text[1024];
    const uint8_t stack_size[] = {(8 + STACK_BYTES) & 0xff, (8 + STACK_BYTES) >> 8};
    const uint64_t stack_at = STACK;
    struct build_buffer seed = {0};
    int length =
        snprintf(text, sizeof text,
                 "%x-%x rw-p 00000000 00:00 0 [stack]\n"
                 "%x-%x r-xp %08x fd:01 17 /data/lib.so\n"
                 "%x-%x r--p 1000 00:00 0 /data/other.apk (deleted)\n"
                 "ff000-ff000 r-xp 0 00:00 0\nnonsense\n",
                 STACK, STACK + 0x1000, LIBRARY, LIBRARY + 0x20000, offset, LIBRARY + 0x40000, LIBRARY + 0x41fff);
    build_add(&seed, text, (size_t)length + 1);
    length = snprintf(text, sizeof text, "pc: %x\n%s: %x\nlr: %x\n", LIBRARY + FRAME_TEXT + 2,
                      arch->register_names[arch->sp_reg], STACK + 16, LIBRARY + FRAME_TEXT + 4);
    length += snprintf(text + length, sizeof text - (size_t)length, "%s: 10\nx99: zz\n", arch->telling_register);
    build_add(&seed, text, (size_t)length + 1);
    build_add(&seed, stack_size, sizeof stack_size);
    build_add(&seed, &stack_at, sizeof stack_at);
    build_add(&seed, stack, STACK_BYTES);
    build_add(&seed, file->data, file->size);
    char name[64];
    snprintf(name, sizeof name, "%s-%s", arch->name, kind);
    write_seed("snapshot", name, -1, seed.data, seed.size);
    free(seed.data);
}

// A library whose .gnu_debuglink names the debug file, one whose build-id does, and one with another machine's.
static void debug_file_seeds(const struct arch *arch, const struct build_buffer *file)
{
    static const uint8_t link[] = "a.debug\0\1\2\3\4";
    for (int by_build_id = 0; by_build_id < 2; by_build_id++) {
        static const uint8_t short_note[] = {4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 0};
        const struct build_elf stripped = {
            .machine = arch->elf_machine,
            .is_32 = arch->word_bytes == 4,
            .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, 0x400, 16},
                         {by_build_id ? ".note.gnu.build-id" : ".gnu_debuglink", by_build_id ? SHT_NOTE : SHT_PROGBITS,
                          by_build_id ? SHF_ALLOC : 0, by_build_id ? 0x4000 : 0, by_build_id ? short_note : link,
                          by_build_id ? sizeof short_note : sizeof link - 1, 4}},
            .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}}};
        struct build_buffer outer = build_elf(&stripped), seed = {0};
        const uint8_t size[] = {(uint8_t)outer.size, (uint8_t)(outer.size >> 8)};
        build_add(&seed, size, sizeof size);
        build_add(&seed, outer.data, outer.size);
        build_add(&seed, file->data, file->size);
        char name[64];
        snprintf(name, sizeof name, "%s-%s", arch->name, by_build_id ? "build-id" : "link");
        write_seed("debug_file", name, -1, seed.data, seed.size);
        free(seed.data);
        free(outer.data);
    }
}

void target_seeds(const struct arch *arch)
{
    uint8_t stack[STACK_BYTES];
    struct build_buffer file = library(arch);
    fill_stack(stack, arch);
    struct build_buffer other = with_build_id(arch);
    core_seed(arch, &file, stack, "frames");
    core_seed(arch, &other, stack, "build-id");
    struct build_buffer inside = with_soname(arch);
    snapshot_seed(arch, &file, 0, stack, "frames");
    snapshot_seed(arch, &other, 0, stack, "build-id");
    snapshot_seed(arch, &inside, ARCHIVE_OFFSET, stack, "soname");
    free(inside.data);
    free(other.data);
    struct oat_spec spec; // known by what only the runtime of Android writes
    oat_spec_init(&spec, arch, 183);
    spec.frames = OAT_DEBUG_FRAME;
    struct build_buffer oat = oat_write(&spec);
    snapshot_seed(arch, &oat, 0, stack, "oat");
    free(oat.data);
    debug_file_seeds(arch, &file);
    write_seed("command", arch->name, -1, file.data, file.size);
    free(file.data);
}
