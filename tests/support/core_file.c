// SPDX-License-Identifier: Apache-2.0
#include "tests/support/core_file.h"

#include <elf.h>
#include <string.h>

enum { FIRST_TID = 100 };

static void put(struct core_file *core, const void *bytes, size_t size)
{
    if (size)
        memcpy(core->bytes + core->size, bytes, size);
    core->size += size;
}

static void put_number(struct core_file *core, uint64_t value, unsigned size)
{
    put(core, &value, size);
}

static void put_note(struct core_file *core, uint32_t type, const void *bytes, size_t size)
{
    const Elf32_Nhdr header = {5, (uint32_t)size, type};
    put(core, &header, sizeof header);
    put(core, "CORE\0\0\0", 8);
    put(core, bytes, size);
    while (core->size % 4)
        core->bytes[core->size++] = 0;
}

static void put_threads(struct core_file *core, const struct arch *arch)
{
    const struct arch_register_layout *layout = arch->core_registers;
    bool wide = arch->word_bytes == 8;
    for (unsigned i = 0; i < CORE_THREADS; i++) {
        uint8_t status[1024] = {0};
        uint8_t *registers = status + (wide ? 112 : 72);
        uint64_t pc = 0x1000 + i, sp = 0x7000 + 16 * i;
        uint32_t tid = FIRST_TID - i;
        status[12] = i == 0 ? 11 : 0;
        memcpy(status + (wide ? 32 : 24), &tid, sizeof tid);
        memcpy(registers + layout->pc_offset, &pc, layout->word_bytes);
        memcpy(registers + layout->reg_offset[arch->sp_reg], &sp, layout->word_bytes);
        put_note(core, NT_PRSTATUS, status, (wide ? 112u : 72u) + layout->size_bytes + arch->word_bytes);
    }
    if (arch->vector_bytes_reg) {
        const uint64_t vectors[][5] = {{0, 0, 0, 0, 32}, {0, 0, 0, 0, 0xffff000012345678}}; // as of Linux 6.5
        put_note(core, 0x901, vectors[0], sizeof vectors[0]);
        put_note(core, 0x901, vectors[1], sizeof vectors[1]);
    }
    uint8_t program[136] = {0};
    uint32_t pid = FIRST_TID;
    memcpy(program + (wide ? 24 : 12), &pid, sizeof pid);
    memcpy(program + (wide ? 40 : 28), "crasher", 8);
    put_note(core, NT_PRPSINFO, program, wide ? 136 : 124);
}

static void put_files(struct core_file *core, const struct arch *arch, const struct core_memory *memory,
                      unsigned memory_count)
{
    struct core_file files = {.size = 0};
    uint64_t count = 0;
    for (unsigned i = 0; i < memory_count; i++)
        count += memory[i].path != NULL;
    put_number(&files, count, arch->word_bytes);
    put_number(&files, 4096, arch->word_bytes);
    for (unsigned i = 0; i < memory_count; i++) {
        if (!memory[i].path)
            continue;
        put_number(&files, memory[i].address, arch->word_bytes);
        put_number(&files, memory[i].address + memory[i].size, arch->word_bytes);
        put_number(&files, memory[i].file_offset / 4096, arch->word_bytes);
    }
    for (unsigned i = 0; i < memory_count; i++)
        if (memory[i].path)
            put(&files, memory[i].path, strlen(memory[i].path) + 1);
    put_note(core, NT_FILE, files.bytes, files.size);
}

static void put_auxv(struct core_file *core, const struct arch *arch, uint64_t vdso)
{
    struct core_file auxv = {.size = 0};
    const uint64_t pairs[] = {AT_ENTRY, 0x1000, AT_SYSINFO_EHDR, vdso, AT_NULL, 0};
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
        put_number(&auxv, pairs[i], arch->word_bytes);
    put_note(core, NT_AUXV, auxv.bytes, auxv.size);
}

static void put_segment(struct core_file *core, bool wide, uint32_t type, uint32_t flags, uint64_t offset,
                        uint64_t address, uint64_t file_size, uint64_t memory_size)
{
    if (wide) {
        const Elf64_Phdr p = {type, flags, offset, address, 0, file_size, memory_size, 4096};
        put(core, &p, sizeof p);
    } else {
        const Elf32_Phdr p = {
            type, (uint32_t)offset, (uint32_t)address, 0, (uint32_t)file_size, (uint32_t)memory_size, flags, 4096};
        put(core, &p, sizeof p);
    }
}

void core_file_make(struct core_file *core, const struct arch *arch, const struct core_memory *memory,
                    unsigned memory_count)
{
    static struct core_file notes;
    bool wide = arch->word_bytes == 8;
    size_t header_bytes = wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    size_t segment_bytes = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    memset(core, 0, sizeof *core);
    notes.size = 0;
    put_threads(&notes, arch);
    put_files(&notes, arch, memory, memory_count);
    put_auxv(&notes, arch, memory_count ? memory[0].address : 0);

    if (wide) {
        const Elf64_Ehdr h = {.e_ident = "\177ELF\2\1\1",
                              .e_type = ET_CORE,
                              .e_machine = arch->elf_machine,
                              .e_version = 1,
                              .e_phoff = header_bytes,
                              .e_ehsize = (uint16_t)header_bytes,
                              .e_phentsize = (uint16_t)segment_bytes,
                              .e_phnum = (uint16_t)(memory_count + 1)};
        put(core, &h, sizeof h);
    } else {
        const Elf32_Ehdr h = {.e_ident = "\177ELF\1\1\1",
                              .e_type = ET_CORE,
                              .e_machine = arch->elf_machine,
                              .e_version = 1,
                              .e_phoff = (uint32_t)header_bytes,
                              .e_ehsize = (uint16_t)header_bytes,
                              .e_phentsize = (uint16_t)segment_bytes,
                              .e_phnum = (uint16_t)(memory_count + 1)};
        put(core, &h, sizeof h);
    }
    uint64_t at = header_bytes + (memory_count + 1) * segment_bytes;
    put_segment(core, wide, PT_NOTE, 0, at, 0, notes.size, 0);
    at += notes.size;
    for (unsigned i = 0; i < memory_count; i++) {
        put_segment(core, wide, PT_LOAD, memory[i].flags, at, memory[i].address, memory[i].dumped, memory[i].size);
        at += memory[i].dumped;
    }
    put(core, notes.bytes, notes.size);
    for (unsigned i = 0; i < memory_count; i++)
        put(core, memory[i].bytes, memory[i].dumped);
}
