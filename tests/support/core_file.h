// SPDX-License-Identifier: Apache-2.0
// Core files made by hand, of every architecture: one thread after the other, then the rest of the notes, then memory.
#ifndef TESTS_SUPPORT_CORE_FILE_H
#define TESTS_SUPPORT_CORE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "libqut/arch/arch.h"

enum { CORE_FILE_MAX = 1 << 16, CORE_THREADS = 3 };

struct core_file {
    uint8_t bytes[CORE_FILE_MAX];
    size_t size;
};

struct core_memory {
    uint64_t address, size; // mapped
    const void *bytes;      // dumped
    uint64_t dumped;
    uint32_t flags;   // PF_*
    const char *path; // NULL: anonymous
    uint64_t file_offset;
};

// Thread i has id 100 - i, pc 0x1000 + i, sp 0x7000 + 16 * i; the first has signal 11. The program is called "crasher".
void core_file_make(struct core_file *core, const struct arch *arch, const struct core_memory *memory,
                    unsigned memory_count);

#endif
