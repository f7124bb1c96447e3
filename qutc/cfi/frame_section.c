// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_section.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/encoded_pointer_inline.h"
#include "qutc/cfi/dwarf_constants.h"

enum { NO_CIE = UINT32_MAX };

struct reader {
    const struct input_image *image;
    const struct input_frame_section *section;
    struct base_pointer_bases bases;
    uint64_t text_start, text_end;
    struct cfi_frame_records *records;
    struct base_error *error;
    uint64_t last_cie_offset; // FDEs of one CIE stand together
    uint32_t last_cie;
};

// One length-prefixed record: its bytes after the length, and where its CIE id (or pointer) stands.
struct record {
    uint64_t offset; // of the length field
    struct base_cursor body;
    uint64_t id_offset;
    uint64_t id;
    bool is_cie;
    bool is_dwarf64;
};

static void skip_record(struct reader *r, enum base_reason reason, uint64_t offset, const char *what)
{
    r->records->skipped++;
    base_fail(&r->records->first_skipped, reason, r->section->name, offset, "%s", what);
}

// False at the end of the section. A length that leaves the section ends the reading, and is counted.
static inline bool next_record(struct reader *r, struct base_cursor *c, struct record *record)
{
    for (;;) {
        if (base_cursor_left(c) < 4)
            return false;
        record->offset = base_cursor_offset(c);
        uint64_t length = base_read_u32(c);
        if (length == 0)
            continue; // some links leave a terminator between two inputs' records
        record->is_dwarf64 = length == 0xffffffff;
        if (record->is_dwarf64)
            length = base_read_u64(c);
        unsigned id_size = record->is_dwarf64 && r->section->kind == INPUT_FRAME_DEBUG ? 8 : 4;
        if (c->failed || length > base_cursor_left(c) || length < id_size) {
            skip_record(r, BASE_ERR_TRUNCATED, record->offset, "record length past the section's end");
            return false;
        }
        record->id_offset = base_cursor_offset(c);
        record->body = *c;
        record->body.end = c->at + length;
        base_cursor_skip(c, length);
        record->id = base_read_uint(&record->body, id_size);
        uint64_t cie_id = r->section->kind == INPUT_FRAME_EH ? 0 : id_size == 8 ? UINT64_MAX : UINT32_MAX;
        record->is_cie = record->id == cie_id;
        return true;
    }
}

// Reads what the letters after 'z' announce. False where a letter is unknown.
static bool read_augmentation(struct reader *r, struct base_cursor *c, const char *letters, struct cfi_cie *cie)
{
    for (; *letters; letters++) {
        uint64_t ignored;
        switch (*letters) {
        case 'R': cie->pointer_encoding = base_read_u8(c); break;
        case 'L': cie->lsda_encoding = base_read_u8(c); break;
        case 'P': {
            // Only its size matters, so an indirect pointer is fine.
            uint8_t encoding = base_read_u8(c) & (uint8_t)~PE_INDIRECT;
            if (!base_read_encoded(c, encoding, cie->address_size, &r->bases, &ignored))
                return false;
            break;
        }
        case 'S': cie->signal_frame = true; break;
        case 'B': cie->key_b = true; break;
        case 'G': break; // memory-tagged stack: concerns nothing a walk reads
        default: return false;
        }
    }
    return true;
}

static const char *parse_cie(struct reader *r, struct base_cursor *c, struct cfi_cie *cie)
{
    cie->address_size = r->image->is_64 ? 8 : 4;
    cie->pointer_encoding = PE_ABSPTR;
    cie->lsda_encoding = PE_OMIT;
    uint8_t version = base_read_u8(c);
    if (version != 1 && version != 3 && version != 4 && !(version == 5 && r->section->kind == INPUT_FRAME_DEBUG))
        return "CIE version";
    const char *letters = base_read_string(c);
    if (!letters)
        return "CIE augmentation string";
    if (letters[0] == 'e' && letters[1] == 'h') { // gcc 2: a pointer to its own exception table
        base_cursor_skip(c, cie->address_size);
        letters += 2;
    }
    if (version >= 4) {
        cie->address_size = base_read_u8(c);
        if (cie->address_size != 4 && cie->address_size != 8)
            return "CIE address size";
        if (base_read_u8(c) != 0)
            return "CIE segment selector size";
    }
    cie->code_align = base_read_uleb(c);
    cie->data_align = base_read_sleb(c);
    cie->ra_column = version == 1 ? base_read_u8(c) : base_read_uleb(c);
    if (letters[0] == 'z') {
        cie->has_augmentation_length = true;
        uint64_t size = base_read_uleb(c);
        if (size > base_cursor_left(c))
            return "CIE augmentation length";
        struct base_cursor data = *c;
        data.end = c->at + size;
        if (!read_augmentation(r, &data, letters + 1, cie) || !base_cursor_is_sound(&data))
            return "CIE augmentation";
        base_cursor_skip(c, size);
    } else if (letters[0]) {
        return "CIE augmentation";
    }
    if (!base_cursor_is_sound(c))
        return "CIE cut off";
    cie->program = (struct base_bytes){c->at, base_cursor_left(c)};
    return NULL;
}

// The CIE at an offset, parsed at its first use; each offset is looked at once. NO_CIE with -1: no memory.
static int find_cie(struct reader *r, uint64_t offset, uint32_t *index)
{
    struct cfi_frame_records *records = r->records;
    uint64_t hash = base_hash_word(0, offset);
    for (uint32_t step = 0; (*index = base_hash_next(&records->cie_index, hash, &step)) != BASE_HASH_NONE;)
        if (records->cies.items[*index].offset == offset)
            break;
    if (*index == BASE_HASH_NONE) {
        struct cfi_cie cie = {.offset = offset};
        struct base_cursor c = base_cursor(r->section->bytes);
        base_cursor_seek(&c, offset);
        struct record record;
        const char *why = "CIE pointer leads outside the section";
        struct base_cursor length = c;
        // From a record of length 0 next_record would move on, over as many of them as there are.
        if (!c.failed && base_read_u32(&length) != 0 && next_record(r, &c, &record))
            why = record.is_cie ? parse_cie(r, &record.body, &cie) : "CIE pointer leads to an FDE";
        cie.usable = !why;
        if (why)
            skip_record(r, BASE_ERR_MALFORMED, offset, why);
        *index = (uint32_t)records->cies.count;
        struct cfi_cie *place = BASE_ADD(&records->cies);
        if (!place || !base_hash_add(&records->cie_index, hash, *index))
            return base_fail(r->error, BASE_ERR_NO_MEMORY, r->section->name, 0, "CIEs");
        *place = cie;
    }
    r->last_cie = *index;
    r->last_cie_offset = offset;
    return 0;
}

static int add_fde(struct reader *r, struct cfi_fde fde)
{
    struct cfi_frame_records *records = r->records;
    if (records->fde_count == records->fde_capacity) {
        size_t smallest_fde_bytes = 16; // more records than this allows there cannot be: addresses, not memory
        size_t capacity = r->section->bytes.size / smallest_fde_bytes + 1;
        struct cfi_fde *fdes =
            base_array_resize(records->fdes, records->fde_capacity * sizeof *fdes, capacity * sizeof *fdes);
        if (!fdes)
            return base_fail(r->error, BASE_ERR_NO_MEMORY, r->section->name, 0, "FDEs");
        records->fdes = fdes;
        records->fde_capacity = capacity;
    }
    records->fdes[records->fde_count++] = fde;
    return 0;
}

// The FDE's [start, start + length).
static inline bool read_range(const struct reader *r, const struct cfi_cie *cie, struct base_cursor *c, uint64_t *start,
                              uint64_t *length)
{
    if (cie->pointer_encoding == (PE_PCREL | PE_SDATA4)) { // nearly every .eh_frame
        *start = r->section->vaddr + base_cursor_offset(c);
        *start += (uint64_t)(int64_t)(int32_t)base_read_u32(c);
        *length = (uint64_t)(int64_t)(int32_t)base_read_u32(c);
        if (!r->image->is_64) {
            *start = (uint32_t)*start;
            *length = (uint32_t)*length;
        }
        return true;
    }
    struct base_cursor slow = *c; // a copy: the caller's own stays in registers
    bool is_readable =
        base_read_encoded(&slow, cie->pointer_encoding, cie->address_size, &r->bases, start) &&
        base_read_encoded(&slow, cie->pointer_encoding & PE_FORMAT_MASK, cie->address_size, &r->bases, length);
    *c = slow;
    return is_readable;
}

static inline int read_fde(struct reader *r, const struct record *record)
{
    uint64_t cie_offset = record->id;
    if (r->section->kind == INPUT_FRAME_EH)
        cie_offset = record->id_offset - record->id; // wraps to a huge offset when it points before the section
    uint32_t cie_index = r->last_cie;
    if ((r->last_cie == NO_CIE || r->last_cie_offset != cie_offset) && find_cie(r, cie_offset, &cie_index) != 0)
        return -1;
    const struct cfi_cie *cie = &r->records->cies.items[cie_index];
    if (!cie->usable) {
        skip_record(r, BASE_ERR_MALFORMED, record->offset, "FDE of an unusable CIE");
        return 0;
    }
    struct base_cursor c = record->body;
    uint64_t start, length;
    bool readable = read_range(r, cie, &c, &start, &length);
    if (cie->has_augmentation_length)
        base_cursor_skip(&c, base_read_uleb(&c));
    if (!readable || !base_cursor_is_sound(&c)) {
        skip_record(r, readable ? BASE_ERR_TRUNCATED : BASE_ERR_UNSUPPORTED, record->offset, "FDE header");
        return 0;
    }
    if (r->image->arch->has_thumb)
        start &= ~(uint64_t)1; // some producers leave the Thumb bit in
    // Linkers leave the FDEs of discarded code behind, with address 0 or a tombstone.
    if (start < r->text_start || start >= r->text_end) {
        r->records->outside_text++;
        return 0;
    }
    if (length == 0)
        return 0;
    uint64_t end = start + length;
    if (end < start || (!r->image->is_64 && end > (uint64_t)1 << 32)) {
        skip_record(r, BASE_ERR_MALFORMED, record->offset, "FDE range wraps around the address space");
        return 0;
    }
    if (end > r->text_end)
        end = r->text_end;
    return add_fde(r, (struct cfi_fde){.start_rel = (uint32_t)(start - r->text_start),
                                       .end_rel = (uint32_t)(end - r->text_start),
                                       .cie = cie_index,
                                       .program_size = (uint32_t)base_cursor_left(&c),
                                       .program = c.at});
}

int cfi_frame_records_read(const struct input_image *image, const struct input_frame_section *section,
                           uint64_t text_start, uint64_t text_end, struct cfi_frame_records *records,
                           struct base_error *error)
{
    *records = (struct cfi_frame_records){0};
    struct reader r = {.image = image,
                       .section = section,
                       .bases = {section->vaddr, section->text_base_vaddr, section->data_base_vaddr, image->is_64},
                       .text_start = text_start,
                       .text_end = text_end,
                       .records = records,
                       .error = error,
                       .last_cie = NO_CIE};
    struct base_cursor c = base_cursor(section->bytes);
    struct record record;
    while (next_record(&r, &c, &record))
        if (!record.is_cie && read_fde(&r, &record) != 0)
            goto failed;
    if (cfi_fdes_order(records->fdes, records->fde_count, &records->fde_order) != 0) {
        base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "FDEs");
        goto failed;
    }
    return 0;
failed:
    cfi_frame_records_free(records);
    return -1;
}

void cfi_frame_records_free(struct cfi_frame_records *records)
{
    base_vector_free(&records->cies.vector);
    base_array_free(records->fdes, records->fde_capacity * sizeof *records->fdes);
    free(records->fde_order);
    base_hash_free(&records->cie_index);
    *records = (struct cfi_frame_records){0};
}
