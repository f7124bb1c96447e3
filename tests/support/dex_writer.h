// SPDX-License-Identifier: Apache-2.0
// Dex files, made for one test each, with the truth about where their code is. As little of the format as names need:
// ids are in the order of the classes, not sorted.
#ifndef TESTS_SUPPORT_DEX_WRITER_H
#define TESTS_SUPPORT_DEX_WRITER_H

#include "tests/support/elf_builder.h"

struct dex_method {
    const char *name;
    uint32_t units;  // of code; 0: abstract or native
    bool same_code;  // as the method before it
    bool is_virtual; // those of a class come after the others
};

struct dex_class {
    const char *descriptor;
    const struct dex_method *methods;
    size_t count;
};

struct dex_spec {
    unsigned version; // 35 to 41; 0: compact
    const struct dex_class *classes;
    size_t count;
};

struct dex_truth {
    struct {
        uint64_t start, end; // in the file
        char name[128];
    } * code;
    size_t count, capacity;
};

// Adds dex files to a file, at multiples of 4, prefix_bytes before each: those of version 41 as one container that
// begins at the first, compact ones with one data section behind the last. offsets: of their headers. truth may be
// NULL.
void dex_add(struct build_buffer *file, const struct dex_spec *specs, size_t count, uint32_t prefix_bytes,
             uint64_t *offsets, struct dex_truth *truth);

// A .vdex file with them: 6, 10, 19, 21, 27.
struct build_buffer dex_vdex(unsigned version, const struct dex_spec *specs, size_t count, struct dex_truth *truth);

void dex_truth_free(struct dex_truth *truth);

#endif
