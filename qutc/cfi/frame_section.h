// SPDX-License-Identifier: Apache-2.0
// .eh_frame and .debug_frame taken apart into their records: CIEs and FDEs, with their instruction bytes.
#ifndef QUTC_CFI_FRAME_SECTION_H
#define QUTC_CFI_FRAME_SECTION_H

#include "base/hash_index.h"
#include "base/vector.h"
#include "qutc/input/image.h"

struct cfi_cie {
    uint64_t offset; // in the section
    bool usable;     // else its FDEs are skipped
    bool has_augmentation_length;
    bool signal_frame; // 'S'
    bool key_b;        // 'B': return addresses are signed with key B
    uint8_t pointer_encoding;
    uint8_t lsda_encoding; // of what FDEs have right before their program, and nothing else
    uint8_t address_size;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    struct base_bytes program;
    // Filled by the run of the program.
    uint32_t initial_form; // forms.h
    int32_t initial_offset_bytes;
    uint32_t class; // CIEs of one class mean the same
    bool has_initial_form;
};

struct cfi_fde {
    uint32_t start_rel; // [start, end) relative to text_start, never empty
    uint32_t end_rel;
    uint32_t cie; // index
    uint32_t program_size;
    const uint8_t *program;
};

struct cfi_frame_records {
    BASE_VECTOR(struct cfi_cie) cies;
    struct cfi_fde *fdes; // as they stand in the section; reserved once, for as many as it has room for
    uint32_t *fde_order;  // in which to run them (cfi_fdes_order); NULL: as they stand
    size_t fde_count, fde_capacity;
    struct base_hash_index cie_index; // by offset

    uint64_t skipped;                // records dropped because they contradict the format
    struct base_error first_skipped; // why the first of them was
    uint64_t outside_text;           // FDEs of discarded code (start outside the text)
};

// Reads all records whose code lies in [text_start, text_end). A malformed record is skipped and counted; only a lack
// of memory fails. Linear in the section's size.
int cfi_frame_records_read(const struct input_image *image, const struct input_frame_section *section,
                           uint64_t text_start, uint64_t text_end, struct cfi_frame_records *records,
                           struct base_error *error);
void cfi_frame_records_free(struct cfi_frame_records *records);

static inline const struct cfi_fde *cfi_fde_at(const struct cfi_frame_records *records, size_t i)
{
    return &records->fdes[records->fde_order ? records->fde_order[i] : i];
}

// ---- fde_sort.c

// The order in which FDEs are to be run: ascending by start; at equal starts the later in the section comes first, so
// that the earlier one, put on top of it, wins. Linear. *order (count indexes) is NULL where they stand in that order
// already; else the caller frees it. Returns -1 where memory lacks.
int cfi_fdes_order(const struct cfi_fde *fdes, size_t count, uint32_t **order);

#endif
