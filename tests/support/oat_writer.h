// SPDX-License-Identifier: Apache-2.0
// OAT files of all versions and architectures, made in memory, after the tables of the format and of nothing else.
#ifndef TESTS_SUPPORT_OAT_WRITER_H
#define TESTS_SUPPORT_OAT_WRITER_H

#include "libqut/arch/arch.h"
#include "tests/support/elf_builder.h"

enum { OAT_METHODS_MAX = 8, OAT_DATA_VADDR = 0x1000 };

// What a method does, in machine code of each architecture.
enum oat_code {
    OAT_FRAMED, // a stack probe, registers pushed, a frame, a call, and all of it undone
    OAT_LEAF,   // returns
    OAT_ODD,    // gets its frame in a way that no reader knows
    OAT_CODES,
};

struct oat_method {
    enum oat_code code;
    uint64_t vaddr; // filled
    uint32_t code_bytes, body_at, body_end, frame_bytes, core_mask, fp_mask;
    bool no_header; // there is none
};

enum oat_frames { OAT_NO_FRAMES, OAT_DEBUG_FRAME, OAT_XZ, OAT_EH_FRAME };

struct oat_spec {
    const struct arch *arch;
    uint32_t version;        // written with three digits
    uint32_t format_version; // 0: the same. How it is in truth
    enum oat_frames frames;
    bool no_section_headers, no_tables, no_symbols;
    void (*spoil_xz)(struct build_buffer *xz);
    unsigned method_count;
    struct oat_method methods[OAT_METHODS_MAX];
    // Filled:
    uint64_t text_vaddr, text_end;
    size_t data_offset, data_bytes, text_offset; // in the file
};

// One method of each code.
void oat_spec_init(struct oat_spec *spec, const struct arch *arch, uint32_t version);

struct build_buffer oat_write(struct oat_spec *spec);

// CodeInfo's varints.
void oat_put_varints(struct build_buffer *to, bool interleaved, const uint32_t *values, unsigned count);

#endif
