// SPDX-License-Identifier: Apache-2.0
// Small ELF files and zip archives, made for one test each.
#ifndef TESTS_SUPPORT_ELF_BUILDER_H
#define TESTS_SUPPORT_ELF_BUILDER_H

#include <elf.h>
#include <stdbool.h>

#include "qutc/input/image.h"

enum { BUILD_SECTIONS_MAX = 80, BUILD_SEGMENTS_MAX = 12 };

struct build_section {
    const char *name;
    uint32_t type;
    uint64_t flags;
    uint64_t vaddr;
    const void *data; // NULL for NOBITS
    size_t size;
    uint64_t alignment;
};

struct build_segment { // covers one section
    uint32_t type;
    uint32_t flags;
    const char *section;
    uint64_t extra_bytes; // beyond the section's end
};

struct build_elf {
    bool is_32;
    uint16_t machine; // 0: x86-64, or with is_32 Arm
    uint16_t type;    // 0: ET_DYN
    bool no_section_headers;
    struct build_section sections[BUILD_SECTIONS_MAX]; // up to the first without a name
    struct build_segment segments[BUILD_SEGMENTS_MAX]; // up to the first without a section
};

struct build_member {
    const char *name;
    const void *data;
    size_t size;
    uint16_t method;
};

// A growing buffer. Aborts without memory: these are tests.
struct build_buffer {
    uint8_t *data;
    size_t size;
};
size_t build_add(struct build_buffer *buffer, const void *data, size_t size); // returns its offset
void build_align(struct build_buffer *buffer, size_t alignment);

// All of these return allocated bytes.
struct build_buffer build_elf(const struct build_elf *spec);
struct build_buffer build_zip(const struct build_member *members, size_t count, const char *comment);
struct build_buffer build_zlib(const void *data, size_t size);
struct build_buffer build_zstd(const void *data, size_t size);
struct build_buffer build_xz(const void *data, size_t size);
struct build_buffer build_compressed64(uint32_t method, uint64_t claimed_size, const struct build_buffer *packed);

// Opened from memory; NULL, and *error, where that fails.
struct input_image *build_open(const struct build_elf *spec, struct base_error *error);
struct input_image *build_open_bytes(const struct build_buffer *file, struct base_error *error);

// Writes a file into a fresh directory, or an existing one. Return allocated paths.
char *build_directory(void);
char *build_file(const char *directory, const char *name, const void *data, size_t size);
void build_remove(char *directory); // with all that is in it, and frees the path

// Where real files for tests are ($QUT_SHARED/corpus/NAME), allocated; where they are absent, NULL, and a line
// "SKIP: ...".
char *corpus_path(const char *name);

#endif
