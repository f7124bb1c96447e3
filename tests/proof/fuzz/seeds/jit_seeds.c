// SPDX-License-Identifier: Apache-2.0
// Lists of code made at run time: in a memory of their own, and in that of a process, where a library's dynamic symbols
// lead to them.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/fake_jit_list.h"
#include "tests/support/frame_asm.h"

// What of the list's memory is free: the library's headers stand before the descriptor.
enum {
    DYNAMIC_AT = 0x400, // fuzz_jit_list.c looks there
    HASH_AT = 0x500,
    SYMBOLS_AT = 0x600,
    STRINGS_AT = 0x700,
    STACK_AT = 0x3c00, // up to the memory's end
};

static void put(struct fake_list *list, size_t at, const void *bytes, size_t size)
{
    memcpy(list->bytes + at, bytes, size);
}

static void put_symbol(struct fake_list *list, size_t at, uint32_t name, uint64_t value)
{
    if (fake_word(list) == 8)
        put(list, at, &(Elf64_Sym){name, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, value, 8}, sizeof(Elf64_Sym));
    else
        put(list, at, &(Elf32_Sym){name, (uint32_t)value, 8, ELF32_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1},
            sizeof(Elf32_Sym));
}

// Both names lead to the one list there is.
static void put_dynamic(struct fake_list *list, bool gnu_hash)
{
    static const char strings[] = "\0__jit_debug_descriptor\0__dex_debug_descriptor";
    enum { JIT = 1, DEX = 24, SYMBOLS = 3 };
    static const uint32_t hash[] = {1, SYMBOLS, 1, 0, 2, 0};               // a bucket; its chain is of both
    static uint32_t gnu[] = {1, 1, 1, 6, UINT32_MAX, UINT32_MAX, 1, 0, 1}; // on 64 bits the filter is two words
    static const char *const names[] = {"__jit_debug_descriptor", "__dex_debug_descriptor"};
    size_t word = fake_word(list), symbol_bytes = word == 8 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    const uint64_t dynamic[] = {
        gnu_hash ? DT_GNU_HASH : DT_HASH, HASH_AT, DT_SYMTAB, SYMBOLS_AT, DT_STRTAB, STRINGS_AT, DT_NULL, 0};
    for (size_t i = 0; i < sizeof dynamic / sizeof *dynamic; i++)
        put(list, DYNAMIC_AT + i * word, &dynamic[i], word);
    put_symbol(list, SYMBOLS_AT + symbol_bytes, JIT, FAKE_DESCRIPTOR - FAKE_BASE);
    put_symbol(list, SYMBOLS_AT + 2 * symbol_bytes, DEX, FAKE_DESCRIPTOR - FAKE_BASE);
    put(list, STRINGS_AT, strings, sizeof strings);
    if (!gnu_hash) {
        put(list, HASH_AT, hash, sizeof hash);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t sum = 5381;
        for (const char *at = names[i]; *at; at++)
            sum = sum * 33 + (uint8_t)*at;
        gnu[7 + i] = i ? sum | 1 : sum & ~1u;
    }
    put(list, HASH_AT, gnu, 4 * sizeof *gnu);
    put(list, HASH_AT + 16 + word, gnu + 6, 3 * sizeof *gnu);
}

// A library of one segment, which is all of the memory.
static void put_headers(struct fake_list *list)
{
    if (fake_word(list) == 8) {
        const Elf64_Ehdr header = {.e_ident = "\177ELF\2\1\1",
                                   .e_type = ET_DYN,
                                   .e_machine = list->memory.arch->elf_machine,
                                   .e_version = 1,
                                   .e_phoff = sizeof header,
                                   .e_ehsize = sizeof header,
                                   .e_phentsize = sizeof(Elf64_Phdr),
                                   .e_phnum = 2};
        const Elf64_Phdr segments[] = {{PT_LOAD, PF_R | PF_X, 0, 0, 0, FAKE_BYTES, FAKE_BYTES, 0x1000},
                                       {PT_DYNAMIC, PF_R, DYNAMIC_AT, DYNAMIC_AT, 0, 128, 128, 8}};
        put(list, 0, &header, sizeof header);
        put(list, sizeof header, segments, sizeof segments);
    } else {
        const Elf32_Ehdr header = {.e_ident = "\177ELF\1\1\1",
                                   .e_type = ET_DYN,
                                   .e_machine = list->memory.arch->elf_machine,
                                   .e_version = 1,
                                   .e_phoff = sizeof header,
                                   .e_ehsize = sizeof header,
                                   .e_phentsize = sizeof(Elf32_Phdr),
                                   .e_phnum = 2};
        const Elf32_Phdr segments[] = {{PT_LOAD, 0, 0, 0, FAKE_BYTES, FAKE_BYTES, PF_R | PF_X, 0x1000},
                                       {PT_DYNAMIC, DYNAMIC_AT, DYNAMIC_AT, 0, 128, 128, PF_R, 8}};
        put(list, 0, &header, sizeof header);
        put(list, sizeof header, segments, sizeof segments);
    }
}

// A process whose stack leads into code of the first symbol file, as fuzz_snapshot takes it.
static void snapshot_seed(struct fake_list *list, const char *name)
{
    const struct arch *arch = list->memory.arch;
    char text[1024];
    const uint64_t at = FAKE_BASE;
    const uint8_t size[] = {(FAKE_BYTES + sizeof at) & 0xff, (FAKE_BYTES + sizeof at) >> 8};
    struct build_buffer seed = {0};
    put_headers(list);
    for (size_t i = STACK_AT; i < FAKE_BYTES; i += fake_word(list)) {
        uint64_t word = i / fake_word(list) % 2 ? FRAME_TEXT + 4 + i % 32 : FAKE_BASE + i + 64;
        put(list, i, &word, fake_word(list));
    }
    int length = snprintf(text, sizeof text,
                          "%x-%x rwxp 00000000 00:00 0 [anon:dalvik-jit-code-cache]\n"
                          "%x-%x r-xp 00000000 fd:01 18 /system/lib/gone.so\n"
                          "%x-%x rw-p 00000000 00:00 0 [stack]\n",
                          FRAME_TEXT, FRAME_TEXT + 0x1000, FAKE_BASE, FAKE_BASE + 0x3000, FAKE_BASE + 0x3000,
                          FAKE_BASE + FAKE_BYTES);
    build_add(&seed, text, (size_t)length + 1);
    length = snprintf(text, sizeof text, "pc: %x\n%s: %x\nlr: %x\n%s: 10\n", FRAME_TEXT + 4,
                      arch->register_names[arch->sp_reg], FAKE_BASE + STACK_AT + 16, FRAME_TEXT + 12,
                      arch->telling_register);
    build_add(&seed, text, (size_t)length + 1);
    build_add(&seed, size, sizeof size);
    build_add(&seed, &at, sizeof at);
    build_add(&seed, list->bytes, sizeof list->bytes);
    write_seed("snapshot", name, -1, seed.data, seed.size);
    free(seed.data);
}

// Three entries, whose symbol files are one ELF image and two that are none; as they are, and changing while they are
// read.
static void list_seeds(const struct arch *arch, unsigned layout, const struct build_buffer *elf, const char *kind)
{
    static struct fake_list list;
    const uint8_t head[] = {(uint8_t)(arch->id - 1), 0}, with_change[] = {(uint8_t)(arch->id - 1), 1, 5, 24, 1};
    const size_t room = STACK_AT - (fake_symfile_at(2) - FAKE_BASE);
    char name[64];
    if (elf->size > room)
        abort();
    fake_init(&list, arch, (enum art_jit_layout)layout);
    for (unsigned i = 0; i < 3; i++)
        fake_add(&list, i, fake_symfile_at(i), i == 2 ? elf->size : 40); // the last one is the list's first
    put(&list, fake_symfile_at(2) - FAKE_BASE, elf->data, elf->size);
    put_dynamic(&list, layout == ART_JIT_GDB);
    for (int changes = 0; changes < 2; changes++) {
        struct build_buffer seed = {0};
        build_add(&seed, changes ? with_change : head, changes ? sizeof with_change : sizeof head);
        build_add(&seed, list.bytes, sizeof list.bytes);
        snprintf(name, sizeof name, "jit-%s-%u%s%s", arch->name, layout, kind, changes ? "-changes" : "");
        write_seed("jit_list", name, -1, seed.data, seed.size);
        free(seed.data);
    }
    snapshot_seed(&list, name);
}

void jit_seeds(const struct arch *arch)
{
    struct frame_asm a = frame_asm(arch, INPUT_FRAME_DEBUG);
    struct frame_cie cie = {.version = 1};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x40});
    struct build_buffer elf = frame_elf(&a);
    for (unsigned layout = 0; layout < 3; layout++)
        list_seeds(arch, layout, &elf, "");
    // As LLVM registers it: relocatable, its sections where they were loaded.
    const struct build_elf loaded = {
        .machine = arch->elf_machine,
        .is_32 = arch->word_bytes == 4,
        .type = ET_REL,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FAKE_BASE + STACK_AT, elf.data, 64, 16},
                     {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}}};
    struct build_buffer relocatable = build_elf(&loaded);
    list_seeds(arch, ART_JIT_GDB, &relocatable, "-loaded");
    write_seed("jit_blob", arch->name, -1, relocatable.data, relocatable.size);
    free(relocatable.data);
    free(elf.data);
    frame_free(&a);
}
