// SPDX-License-Identifier: Apache-2.0
// What an ELF image says of how it is mapped, wherever its bytes are: a file, a file inside an archive, the memory of a
// process. Nothing in it is believed before it was compared with what surrounds it.
#ifndef QUT_ELF_ELF_HEAD_H
#define QUT_ELF_ELF_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libqut/elf/build_id.h"

enum { ELF_LOADS_MAX = 32, ELF_NOTES_MAX = 8 };

struct elf_segment {
    uint32_t type, flags; // PT_*, PF_*
    uint64_t offset, vaddr;
    uint64_t file_size, memory_size;
    uint64_t alignment;
};

struct elf_head {
    bool is_64;
    uint16_t machine, type;
    uint64_t entry; // virtual address in the file
    bool has_interpreter;
    unsigned load_count, note_count;
    struct elf_segment loads[ELF_LOADS_MAX]; // ascending by vaddr as the ABI has it, or in the file's order
    struct elf_segment notes[ELF_NOTES_MAX];
    struct elf_segment dynamic; // file_size 0: there is none
    uint64_t section_table;     // offset of the section headers
    unsigned section_count;
};

// Copies bytes of the image; returns how many could be read from the start on. `position` is an offset from the image's
// first byte, or, where a function says so, a virtual address.
typedef size_t (*elf_image_read)(void *context, uint64_t position, void *bytes, size_t size);

// One program header, as it stands in a file of that class.
struct elf_segment elf_segment_of(const uint8_t *header, bool is_64);

// False: these are not the headers of a little-endian ELF program, library or core.
bool elf_head_read(struct elf_head *head, elf_image_read read, void *context);

// Returns the size of the build-id, 0 where there is none. by_vaddr: what `read` takes; with offsets, sections count as
// well (a library that went through a tool without PT_NOTE has it in a section only).
uint32_t elf_build_id(const struct elf_head *head, elf_image_read read, void *context, bool by_vaddr,
                      uint8_t build_id[ELF_BUILD_ID_MAX]);

// The image's DT_SONAME, from malloc; NULL where there is none. `read` takes offsets.
char *elf_soname(const struct elf_head *head, elf_image_read read, void *context);

// What a mapping of `size` bytes, whose first byte stands `offset` bytes behind the image's, belongs to: sets
// *vaddr, the virtual address of that first byte. False: no segment lies there. Knows nothing of page sizes.
bool elf_mapped_vaddr(const struct elf_head *head, uint64_t offset, uint64_t size, bool executable, uint64_t *vaddr);

#endif
