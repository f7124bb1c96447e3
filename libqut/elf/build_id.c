// SPDX-License-Identifier: Apache-2.0
#include "libqut/elf/build_id.h"

#include <elf.h>
#include <string.h>

// Positions are aligned, not sizes: a header of 12 bytes and a name of 4 end at a multiple of 8.
static uint64_t align_up(uint64_t position, uint64_t unit)
{
    return (position + unit - 1) & ~(unit - 1);
}

uint32_t elf_find_build_id(const uint8_t *notes, size_t size, uint64_t alignment, size_t *at)
{
    uint64_t unit = alignment == 8 ? 8 : 4;
    Elf32_Nhdr note; // equal for both classes
    for (uint64_t position = 0; position <= size && size - position >= sizeof note;) {
        memcpy(&note, notes + position, sizeof note);
        uint64_t name = position + sizeof note;
        uint64_t value = align_up(name + note.n_namesz, unit);
        uint64_t end = value + note.n_descsz;
        if (end > size)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= ELF_BUILD_ID_MAX) {
            *at = (size_t)value;
            return note.n_descsz;
        }
        position = align_up(end, unit);
    }
    return 0;
}
