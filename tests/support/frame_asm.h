// SPDX-License-Identifier: Apache-2.0
// Frame sections (.eh_frame, .debug_frame) record by record, well formed or not, and a small ELF file around them.
#ifndef TESTS_SUPPORT_FRAME_ASM_H
#define TESTS_SUPPORT_FRAME_ASM_H

#include "base/encoded_pointer_inline.h"
#include "qutc/cfi/dwarf_constants.h"
#include "tests/support/elf_builder.h"

enum {
    FRAME_TEXT = 0x10000, // where the code of every assembled file begins
    FRAME_VADDR = 0x8000000,
};

struct frame_asm {
    struct build_buffer bytes; // of the section; a test may spoil them
    const struct arch *arch;
    enum input_frame_kind kind;
    uint64_t text_size;
    bool by_segment; // no section headers: .eh_frame is found through PT_GNU_EH_FRAME
};

// What is 0 gets the usual value: version 1, "zR" in .eh_frame and "" in .debug_frame, absolute pointers, factors 1 and
// -word, the architecture's return column, and its state at a function's first instruction.
struct frame_cie {
    uint8_t version;
    bool dwarf64;
    const char *augmentation; // of the letters z R S B L
    uint8_t pointer_encoding;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    const uint8_t *program;
    size_t program_size;
    size_t offset; // filled by frame_add_cie
};

struct frame_fde {
    const struct frame_cie *cie;
    uint64_t start; // relative to FRAME_TEXT
    uint64_t size;
    const uint8_t *program;
    size_t program_size;
    bool dwarf64;
    size_t program_at; // filled by frame_add_fde: offset in the section
};

struct frame_asm frame_asm(const struct arch *arch, enum input_frame_kind kind);
void frame_free(struct frame_asm *a);

// No padding is added: a program ends where the record does. Return the record's offset.
size_t frame_add_cie(struct frame_asm *a, struct frame_cie *cie);
size_t frame_add_fde(struct frame_asm *a, struct frame_fde *fde);

void frame_put(struct build_buffer *buffer, uint64_t value, size_t size);
void frame_put_uleb(struct build_buffer *buffer, uint64_t value);
void frame_put_sleb(struct build_buffer *buffer, int64_t value);

// The bytes of a whole ELF file with this section and executable text of a->text_size bytes.
struct build_buffer frame_elf(const struct frame_asm *a);

// Bytes and their count, as two arguments or initialisers.
#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

#endif
