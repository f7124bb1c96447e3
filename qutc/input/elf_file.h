// SPDX-License-Identifier: Apache-2.0
// The headers of one ELF file in memory, in one form for both word sizes. What is asked of an ELF file here is so
// little that a copy of its header tables is simpler, and safer with hostile files, than to keep a reader open on it.
#ifndef QUTC_INPUT_ELF_FILE_H
#define QUTC_INPUT_ELF_FILE_H

#include "base/cursor_inline.h"
#include "base/error.h"
#include "libqut/arch/arch.h"
#include "qutc/input/file_map.h"

enum { INPUT_SECTION_NAME_MAX = 255 }; // longer names do not occur: they read as ""

struct input_elf_section {
    const char *name; // in the file's bytes; "" where it has none
    uint32_t type;
    uint64_t flags;
    uint64_t vaddr;
    uint64_t offset_bytes;
    uint64_t size_bytes;
    uint64_t alignment;
    uint64_t entry_bytes;
    uint32_t link; // index of another section in the file's own numbering, which begins with 1 at sections[0]
};

struct input_elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t vaddr;
    uint64_t offset_bytes;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
};

struct input_elf {
    struct base_bytes bytes;
    struct input_file_map *source; // asked before bytes are looked at; NULL: all of them are there
    const struct arch *arch;
    bool is_64;
    struct input_elf_section *sections;
    size_t section_count;
    struct input_elf_segment *segments;
    size_t segment_count;
    bool is_relocatable;      // st_value of a symbol counts from its section's vaddr
    struct base_error damage; // a header table that was left out because it does not lie in the file
};

// The bytes must outlive *elf, and so must their source. Refuses everything but linked little-endian files of a machine
// we know.
int input_elf_read(struct input_elf *elf, struct base_bytes bytes, struct base_error *error);
// Takes a relocatable file too, as a just-in-time compiler describes what it loaded: a section's vaddr is where it is,
// its bytes are relocated. Sections that were not loaded have no address; but for symbols and their names, they read as
// SHT_NULL, since they were not relocated.
int input_elf_read_loaded(struct input_elf *elf, struct base_bytes bytes, struct base_error *error);
int input_elf_read_file(struct input_elf *elf, struct input_file_map *source, struct base_error *error);
void input_elf_free(struct input_elf *elf);

// Before bytes are looked at that none of the functions below returned. What cannot be read is zero, and makes
// input_file_map_is_whole say so.
void input_elf_need(const struct input_elf *elf, uint64_t offset_bytes, uint64_t size_bytes);
void input_elf_need_all(const struct input_elf *elf);

// Whether these first bytes of a file (64 suffice) are those of an ELF file that input_elf_read would not refuse at
// sight. *is_elf tells apart what is not ELF at all.
bool input_elf_probe(struct base_bytes start, bool *is_elf);

// First section of that name that has bytes or an address, or NULL.
const struct input_elf_section *input_elf_find(const struct input_elf *elf, const char *name);

// Size 0 for a section without bytes (NOBITS). Fails for one that does not lie in the file.
int input_elf_section_bytes(const struct input_elf *elf, const struct input_elf_section *section,
                            struct base_bytes *bytes, struct base_error *error);

// As much of the segment's file bytes as the file has. The extent alone; needs input_elf_need.
struct base_bytes input_elf_segment_extent(const struct input_elf *elf, const struct input_elf_segment *segment);
// ... and there to be looked at.
struct base_bytes input_elf_segment_bytes(const struct input_elf *elf, const struct input_elf_segment *segment);

#endif
