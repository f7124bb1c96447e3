// SPDX-License-Identifier: Apache-2.0
// Memory of the process whose virtual machine is looked at: another one, or our own while it runs.
#ifndef QUT_ELF_IMAGE_MEMORY_H
#define QUT_ELF_IMAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libqut/arch/arch.h"

struct elf_art_piece {
    uint64_t address;
    void *bytes;
    size_t size, got; // got: how many bytes could be read, from the start on
};

struct elf_art_memory {
    // How many bytes could be read, from the start on. Never faults.
    size_t (*read)(void *context, uint64_t address, void *bytes, size_t size);
    // Several pieces at once; NULL: there is no faster way than one by one.
    void (*read_pieces)(void *context, struct elf_art_piece *pieces, size_t count);
    void *context;
    const struct arch *arch; // of the process
    bool never_changes;      // a core file, a snapshot: what was read once is so
};

static inline bool elf_art_read(const struct elf_art_memory *memory, uint64_t address, void *bytes, size_t size)
{
    return memory->read(memory->context, address, bytes, size) == size;
}

static inline void elf_art_read_pieces(const struct elf_art_memory *memory, struct elf_art_piece *pieces, size_t count)
{
    if (memory->read_pieces) {
        memory->read_pieces(memory->context, pieces, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        pieces[i].got = memory->read(memory->context, pieces[i].address, pieces[i].bytes, pieces[i].size);
}

#endif
