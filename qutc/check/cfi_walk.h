// SPDX-License-Identifier: Apache-2.0
// A walk over the records and instruction lengths of a CFI section that evaluates nothing. The judges use it to know
// where a library is about to misread something, to step around that, and for what no library tells (pointer
// authentication). It decodes lengths, code ranges and the pc of each instruction; never a rule.
#ifndef QUTC_CHECK_CFI_WALK_H
#define QUTC_CHECK_CFI_WALK_H

#include "base/vector.h"
#include "qutc/input/image.h"

struct check_walk_cie {
    uint64_t offset;
    uint64_t augmentation_offset;    // of its letters
    uint64_t code_offset, code_size; // initial instructions
    uint64_t code_align;
    uint8_t pointer_encoding; // DW_EH_PE_*
    uint8_t address_bytes;
    bool readable;           // else its FDEs are not in the index
    bool sized_augmentation; // 'z'
    bool key_b;              // 'B'
    bool has_negate;         // a DW_CFA_AARCH64_negate_ra_state in the initial instructions
    uint64_t undefined;      // bit per register below 64 that a DW_CFA_undefined names
};

struct check_walk_fde {
    uint64_t start, end;             // of the code, virtual addresses
    uint64_t offset;                 // of the record
    uint64_t code_offset, code_size; // instructions
    uint32_t cie;                    // index
    uint64_t undefined;              // bit per register below 64 that a DW_CFA_undefined names, here or in the CIE
    uint32_t advances;               // instructions that move the pc: at most so many rows more
    bool has_negate;
    bool has_set_loc;
    bool has_wide_register; // a register number that does not fit 16 bits
    bool is_malformed;      // the instruction lengths do not add up
    bool overlaps;          // its code range meets another FDE's
    bool relative_base;     // pointers relative to the text's, the data's or the function's start
    bool is_discarded;      // begins where the image has no code: of a function that the linker threw away
    bool has_thumb_bit;     // in its address, as it stands in the section; not in `start`
};

// A zero length with records behind it; some links leave one between two inputs' records.
struct check_walk_terminator {
    uint64_t offset;
    uint64_t record_offset; // of the record before it
};

struct check_walk_index {
    const struct input_image *image;
    const struct input_frame_section *section;
    BASE_VECTOR(struct check_walk_cie) cies; // ascending by offset
    BASE_VECTOR(struct check_walk_fde) fdes; // ascending by start, then by offset; without empty ones
    uint64_t *furthest_end;                  // by FDE: greatest end of this and all before it
    BASE_VECTOR(struct check_walk_terminator) terminators;
    uint64_t leading_bytes; // of terminators before the first record
};

// One instruction, as far as its length and its effect on the pc go.
struct check_walk_instruction {
    uint8_t opcode; // without the operand in its low bits
    uint64_t offset;
    uint64_t advance_bytes;
    uint64_t set_pc; // set_loc
    uint64_t reg;    // undefined
    bool wide_register;
};

enum { CHECK_WALK_NEGATE_RA_STATE = 0x2d }; // DW_CFA_AARCH64_negate_ra_state; elsewhere GNU_window_save

// Linear in the section but for the sorting. Records that contradict the format are passed over.
int check_walk_section(const struct input_image *image, const struct input_frame_section *section,
                       struct check_walk_index *index, struct base_error *error);
void check_walk_free(struct check_walk_index *index);

// The FDE that describes a pc: of those that cover it the one with the greatest start, of these the first of the
// section. NULL where there is none.
const struct check_walk_fde *check_walk_find(const struct check_walk_index *index, uint64_t pc);

// The instructions of a record, one a call. False at their end and where the lengths do not add up (the cursor has
// failed then).
struct base_cursor check_walk_code(const struct check_walk_index *index, uint64_t code_offset, uint64_t code_size);
bool check_walk_next(const struct check_walk_index *index, const struct check_walk_cie *cie, struct base_cursor *c,
                     struct check_walk_instruction *instruction);

// In a private copy of the section: turns every negate_ra_state into a nop, every terminator between records into
// padding of the record before it, and takes the letters B and G, which have no data, out of augmentations.
void check_walk_patch(const struct check_walk_index *index, uint8_t *bytes);

// Rewrites a copy of a .debug_frame as .eh_frame: CIE ids become 0, offsets of CIEs distances back to them.
void check_walk_to_eh_frame(uint8_t *bytes, size_t size);

// Whether the return address is signed at a pc of this FDE.
bool check_walk_ra_signed(const struct check_walk_index *index, const struct check_walk_fde *fde, uint64_t pc);

#endif
