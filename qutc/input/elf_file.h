// SPDX-License-Identifier: Apache-2.0
// The headers of one ELF file in memory, in one form for both word sizes. What is asked of an ELF file here is so
// little that a copy of its header tables is simpler, and safer with hostile files, than to keep a reader open on it.
#ifndef QUTC_INPUT_ELF_FILE_H
#define QUTC_INPUT_ELF_FILE_H

#include "libqut/arch/arch.h"
#include "qutc/base/cursor.h"
#include "qutc/base/error.h"
#include "qutc/input/file_map.h"

enum { QUTC_SECTION_NAME_MAX = 255 }; // longer names are nobody's: they read as ""

struct qutc_elf_section {
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

struct qutc_elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t vaddr;
    uint64_t offset_bytes;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
};

struct qutc_elf {
    struct qutc_bytes bytes;
    struct qutc_file_map *source; // asked before bytes are looked at; NULL: all of them are there
    const struct qut_arch *arch;
    bool is_64;
    struct qutc_elf_section *sections;
    size_t section_count;
    struct qutc_elf_segment *segments;
    size_t segment_count;
    bool is_relocatable;      // st_value of a symbol counts from its section's vaddr
    struct qutc_error damage; // a header table that was left out because it does not lie in the file
};

// The bytes must outlive *elf, and so must their source. Refuses everything but linked little-endian files of a machine
// we know.
int qutc_elf_read(struct qutc_elf *elf, struct qutc_bytes bytes, struct qutc_error *error);
// Takes a relocatable file too, as a just-in-time compiler describes what it loaded: a section's vaddr is where it is,
// its bytes are relocated. Sections that were not loaded have no address; but for symbols and their names, they read as
// SHT_NULL, since nobody relocated them.
int qutc_elf_read_loaded(struct qutc_elf *elf, struct qutc_bytes bytes, struct qutc_error *error);
int qutc_elf_read_file(struct qutc_elf *elf, struct qutc_file_map *source, struct qutc_error *error);
void qutc_elf_free(struct qutc_elf *elf);

// Before bytes are looked at that none of the functions below returned. What cannot be read is zero, and makes
// qutc_file_map_is_whole say so.
void qutc_elf_need(const struct qutc_elf *elf, uint64_t offset_bytes, uint64_t size_bytes);
void qutc_elf_need_all(const struct qutc_elf *elf);

// Whether these first bytes of a file (64 suffice) are those of an ELF file that qutc_elf_read would not refuse at
// sight. *is_elf tells apart what is not ELF at all.
bool qutc_elf_probe(struct qutc_bytes start, bool *is_elf);

// First section of that name that has bytes or an address, or NULL.
const struct qutc_elf_section *qutc_elf_find(const struct qutc_elf *elf, const char *name);

// Size 0 for a section without bytes (NOBITS). Fails for one that does not lie in the file.
int qutc_elf_section_bytes(const struct qutc_elf *elf, const struct qutc_elf_section *section, struct qutc_bytes *bytes,
                           struct qutc_error *error);

// As much of the segment's file bytes as the file has. The extent alone; needs qutc_elf_need.
struct qutc_bytes qutc_elf_segment_extent(const struct qutc_elf *elf, const struct qutc_elf_segment *segment);
// ... and there to be looked at.
struct qutc_bytes qutc_elf_segment_bytes(const struct qutc_elf *elf, const struct qutc_elf_segment *segment);

#endif
