// SPDX-License-Identifier: Apache-2.0
// What the walk knows, applied: the private copies the judges read, and the signing of return addresses.
#include <dwarf.h>
#include <string.h>

#include "qutc/check/cfi_walk.h"

enum { REMEMBER_DEPTH_MAX = 64 };

static void patch_code(const struct check_walk_index *index, const struct check_walk_cie *cie, uint64_t code_offset,
                       uint64_t code_size, uint8_t *bytes)
{
    struct check_walk_instruction in;
    struct base_cursor code = check_walk_code(index, code_offset, code_size);
    while (check_walk_next(index, cie, &code, &in))
        if (in.opcode == CHECK_WALK_NEGATE_RA_STATE)
            bytes[in.offset] = DW_CFA_nop;
}

// Lengthens the record at an offset by the four zero bytes behind it, which read as four nops.
static void lengthen_record(uint8_t *record)
{
    uint32_t length;
    memcpy(&length, record, sizeof length);
    if (length == UINT32_MAX) {
        uint64_t wide;
        memcpy(&wide, record + 4, sizeof wide);
        wide += 4;
        memcpy(record + 4, &wide, sizeof wide);
    } else {
        length += 4;
        memcpy(record, &length, sizeof length);
    }
}

// B (key B signs) and G (tagged stack) say nothing of where the frame is. What follows moves up; a nop fills the end.
static void remove_letters(const struct check_walk_cie *cie, uint8_t *bytes)
{
    uint64_t end = cie->code_offset + cie->code_size;
    for (uint64_t at = cie->augmentation_offset; bytes[at];) {
        if (bytes[at] == 'B' || bytes[at] == 'G') {
            memmove(bytes + at, bytes + at + 1, end - at - 1);
            bytes[end - 1] = DW_CFA_nop;
        } else {
            at++;
        }
    }
}

void check_walk_patch(const struct check_walk_index *index, uint8_t *bytes)
{
    for (size_t i = 0; i < index->cies.count; i++) {
        const struct check_walk_cie *cie = &index->cies.items[i];
        if (cie->has_negate)
            patch_code(index, cie, cie->code_offset, cie->code_size, bytes);
        if (cie->readable && cie->sized_augmentation)
            remove_letters(cie, bytes);
    }
    for (size_t i = 0; i < index->fdes.count; i++) {
        const struct check_walk_fde *fde = &index->fdes.items[i];
        if (fde->has_negate)
            patch_code(index, &index->cies.items[fde->cie], fde->code_offset, fde->code_size, bytes);
    }
    for (size_t i = 0; i < index->terminators.count; i++)
        lengthen_record(bytes + index->terminators.items[i].record_offset);
}

void check_walk_to_eh_frame(uint8_t *bytes, size_t size)
{
    struct base_cursor c = base_cursor((struct base_bytes){bytes, size});
    while (base_cursor_left(&c) >= 4) {
        uint64_t length = base_read_u32(&c);
        bool is_64 = length == UINT32_MAX;
        if (is_64)
            length = base_read_u64(&c);
        uint64_t id_offset = base_cursor_offset(&c);
        if (length && base_cursor_left(&c) >= 8) {
            struct base_cursor field = c;
            uint64_t id = is_64 ? base_read_u64(&field) : base_read_u32(&field);
            uint64_t back = id == (is_64 ? UINT64_MAX : UINT32_MAX) ? 0 : id_offset - id;
            memcpy(bytes + id_offset, &back, is_64 ? 8 : 4);
        }
        base_cursor_skip(&c, length);
    }
}

// signed(pc) = parity of the negations before pc, where restore_state brings back the parity of its remember_state.
bool check_walk_ra_signed(const struct check_walk_index *index, const struct check_walk_fde *fde, uint64_t pc)
{
    if (!fde->has_negate)
        return false;
    const struct check_walk_cie *cie = &index->cies.items[fde->cie];
    bool is_signed = false;
    bool remembered[REMEMBER_DEPTH_MAX];
    unsigned depth = 0;
    uint64_t at = fde->start;
    for (unsigned part = 0; part < 2; part++) {
        struct check_walk_instruction in;
        struct base_cursor code = part ? check_walk_code(index, fde->code_offset, fde->code_size)
                                       : check_walk_code(index, cie->code_offset, cie->code_size);
        while (check_walk_next(index, cie, &code, &in)) {
            at = in.opcode == DW_CFA_set_loc ? in.set_pc : at + in.advance_bytes;
            if (at > pc)
                return is_signed;
            if (in.opcode == CHECK_WALK_NEGATE_RA_STATE)
                is_signed = !is_signed;
            else if (in.opcode == DW_CFA_remember_state && depth < REMEMBER_DEPTH_MAX)
                remembered[depth++] = is_signed;
            else if (in.opcode == DW_CFA_restore_state && depth)
                is_signed = remembered[--depth];
        }
    }
    return is_signed;
}
