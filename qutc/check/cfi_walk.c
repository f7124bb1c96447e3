// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/cfi_walk.h"

#include <dwarf.h>
#include <stdlib.h>

enum {
    WIDE_REGISTER = 0x10000,
    FORMAT_MASK = 0x0f,
    RELATION_MASK = 0x70,
};

static uint64_t read_encoded(const struct input_frame_section *section, struct base_cursor *c, uint8_t encoding,
                             unsigned address_bytes)
{
    uint64_t at = section->vaddr + (uint64_t)(c->at - section->bytes.data);
    uint64_t value;
    switch (encoding & FORMAT_MASK) {
    case DW_EH_PE_absptr: value = base_read_uint(c, address_bytes); break;
    case DW_EH_PE_uleb128: value = base_read_uleb(c); break;
    case DW_EH_PE_udata2: value = base_read_u16(c); break;
    case DW_EH_PE_udata4: value = base_read_u32(c); break;
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: value = base_read_u64(c); break;
    case DW_EH_PE_sleb128: value = (uint64_t)base_read_sleb(c); break;
    case DW_EH_PE_sdata2: value = (uint64_t)(int16_t)base_read_u16(c); break;
    case DW_EH_PE_sdata4: value = (uint64_t)(int32_t)base_read_u32(c); break;
    default: base_cursor_fail(c); return 0;
    }
    switch (encoding & RELATION_MASK) {
    case 0: break;
    case DW_EH_PE_pcrel: value += at; break;
    case DW_EH_PE_textrel: value += section->text_base_vaddr; break;
    case DW_EH_PE_datarel: value += section->data_base_vaddr; break;
    default: base_cursor_fail(c); return 0;
    }
    return address_bytes == 4 ? value & UINT32_MAX : value;
}

static void read_register(struct base_cursor *c, struct check_walk_instruction *in)
{
    in->reg = base_read_uleb(c);
    if (in->reg >= WIDE_REGISTER)
        in->wide_register = true;
}

bool check_walk_next(const struct check_walk_index *index, const struct check_walk_cie *cie, struct base_cursor *c,
                     struct check_walk_instruction *in)
{
    if (c->failed || !base_cursor_left(c))
        return false;
    *in = (struct check_walk_instruction){.offset = (uint64_t)(c->at - index->section->bytes.data)};
    in->opcode = base_read_u8(c);
    if (in->opcode & 0xc0) {
        uint8_t low = in->opcode & 0x3f;
        in->opcode &= 0xc0;
        if (in->opcode == DW_CFA_advance_loc)
            in->advance_bytes = low * cie->code_align;
        else if (in->opcode == DW_CFA_offset)
            base_read_uleb(c);
        return !c->failed;
    }
    switch (in->opcode) {
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
    case CHECK_WALK_NEGATE_RA_STATE: break;
    case DW_CFA_set_loc: in->set_pc = read_encoded(index->section, c, cie->pointer_encoding, cie->address_bytes); break;
    case DW_CFA_advance_loc1: in->advance_bytes = base_read_u8(c) * cie->code_align; break;
    case DW_CFA_advance_loc2: in->advance_bytes = base_read_u16(c) * cie->code_align; break;
    case DW_CFA_advance_loc4: in->advance_bytes = base_read_u32(c) * cie->code_align; break;
    case DW_CFA_MIPS_advance_loc8: in->advance_bytes = base_read_u64(c) * cie->code_align; break;
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_def_cfa_register: read_register(c, in); break;
    case DW_CFA_offset_extended:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_GNU_negative_offset_extended:
        read_register(c, in);
        base_read_uleb(c); // a signed number has the same length
        break;
    case DW_CFA_register:
        read_register(c, in);
        read_register(c, in);
        break;
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_GNU_args_size: base_read_uleb(c); break;
    case DW_CFA_def_cfa_expression: base_cursor_skip(c, base_read_uleb(c)); break;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        read_register(c, in);
        base_cursor_skip(c, base_read_uleb(c));
        break;
    default: base_cursor_fail(c);
    }
    return !c->failed;
}

static uint64_t undefined_register(const struct check_walk_instruction *in)
{
    return in->opcode == DW_CFA_undefined && in->reg < 64 ? (uint64_t)1 << in->reg : 0;
}

struct base_cursor check_walk_code(const struct check_walk_index *index, uint64_t code_offset, uint64_t code_size)
{
    return base_cursor((struct base_bytes){index->section->bytes.data + code_offset, (size_t)code_size});
}

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index of a frame section");
}

// c stands behind the CIE id and ends with the record.
static void read_cie(struct check_walk_index *index, struct base_cursor *c, struct check_walk_cie *cie)
{
    uint8_t version = base_read_u8(c);
    const char *augmentation = base_read_string(c);
    if (!augmentation)
        return;
    cie->augmentation_offset = (uint64_t)((const uint8_t *)augmentation - index->section->bytes.data);
    cie->address_bytes = index->image->arch->word_bytes;
    if (version >= 4) {
        cie->address_bytes = base_read_u8(c);
        if (base_read_u8(c) != 0) // segment selectors
            return;
    }
    if (augmentation[0] == 'e' && augmentation[1] == 'h') {
        base_cursor_skip(c, cie->address_bytes);
        augmentation += 2;
    }
    cie->code_align = base_read_uleb(c);
    base_read_sleb(c);
    if (version == 1)
        base_read_u8(c);
    else
        base_read_uleb(c);
    if (*augmentation == 'z') {
        cie->sized_augmentation = true;
        struct base_bytes data = base_read_bytes(c, base_read_uleb(c));
        struct base_cursor a = {index->section->bytes.data, data.data, data.data + data.size, false, false};
        for (const char *letter = augmentation + 1; *letter; letter++) {
            if (*letter == 'R') {
                cie->pointer_encoding = base_read_u8(&a);
            } else if (*letter == 'L') {
                base_read_u8(&a);
            } else if (*letter == 'P') {
                uint8_t encoding = base_read_u8(&a);
                read_encoded(index->section, &a, encoding & FORMAT_MASK, cie->address_bytes);
            } else if (*letter == 'B') {
                cie->key_b = true;
            } else if (*letter != 'S' && *letter != 'G') {
                break; // the length says where the rest ends
            }
        }
        if (a.failed)
            return;
    } else if (*augmentation) {
        return;
    }
    if (c->failed)
        return;
    cie->code_offset = (uint64_t)(c->at - index->section->bytes.data);
    cie->code_size = base_cursor_left(c);
    cie->readable = true;

    struct check_walk_instruction in;
    struct base_cursor code = check_walk_code(index, cie->code_offset, cie->code_size);
    while (check_walk_next(index, cie, &code, &in)) {
        cie->has_negate |= in.opcode == CHECK_WALK_NEGATE_RA_STATE;
        cie->undefined |= undefined_register(&in);
    }
}

static int compare_cie(const void *key, const void *item)
{
    uint64_t offset = *(const uint64_t *)key;
    const struct check_walk_cie *cie = item;
    return offset < cie->offset ? -1 : offset > cie->offset;
}

// From the first code to the last. An image of which that is not known has text everywhere.
static bool is_in_text(const struct input_image *image, uint64_t vaddr)
{
    unsigned count = image->exec_count;
    return count == 0 || (vaddr >= image->exec[0].start && vaddr < image->exec[count - 1].end);
}

static bool read_fde(struct check_walk_index *index, struct base_cursor *c, uint64_t cie_offset,
                     struct check_walk_fde *fde)
{
    const struct check_walk_cie *cie =
        index->cies.count ? bsearch(&cie_offset, index->cies.items, index->cies.count, sizeof *cie, compare_cie) : NULL;
    if (!cie || !cie->readable)
        return false;
    fde->cie = (uint32_t)(cie - index->cies.items);
    fde->relative_base = (cie->pointer_encoding & RELATION_MASK) > DW_EH_PE_pcrel;
    fde->start = read_encoded(index->section, c, cie->pointer_encoding, cie->address_bytes);
    uint64_t size = read_encoded(index->section, c, cie->pointer_encoding & FORMAT_MASK, cie->address_bytes);
    fde->is_discarded = !is_in_text(index->image, fde->start);
    fde->has_thumb_bit = index->image->arch->has_thumb && (fde->start & 1);
    fde->start -= fde->has_thumb_bit;
    fde->end = fde->start + size;
    if (cie->sized_augmentation)
        base_cursor_skip(c, base_read_uleb(c));
    if (c->failed || fde->end <= fde->start)
        return false;
    fde->code_offset = (uint64_t)(c->at - index->section->bytes.data);
    fde->code_size = base_cursor_left(c);
    fde->has_negate = cie->has_negate;
    fde->undefined = cie->undefined;

    struct check_walk_instruction in;
    struct base_cursor code = check_walk_code(index, fde->code_offset, fde->code_size);
    while (check_walk_next(index, cie, &code, &in)) {
        fde->has_negate |= in.opcode == CHECK_WALK_NEGATE_RA_STATE;
        fde->undefined |= undefined_register(&in);
        fde->has_set_loc |= in.opcode == DW_CFA_set_loc;
        fde->has_wide_register |= in.wide_register;
        fde->advances += in.opcode == DW_CFA_set_loc || in.advance_bytes != 0;
    }
    fde->is_malformed = code.failed;
    return true;
}

static int add_terminator(struct check_walk_index *index, uint64_t offset, uint64_t record_offset,
                          struct base_error *error)
{
    if (record_offset == UINT64_MAX) {
        index->leading_bytes = offset + 4;
        return 0;
    }
    struct check_walk_terminator *terminator = BASE_ADD(&index->terminators);
    if (!terminator)
        return no_memory(error);
    *terminator = (struct check_walk_terminator){offset, record_offset};
    return 0;
}

// The CIEs first: an FDE may stand before its CIE.
static int read_records(struct check_walk_index *index, bool want_cies, struct base_error *error)
{
    bool is_eh = index->section->kind == INPUT_FRAME_EH;
    uint64_t record_offset = UINT64_MAX; // of the last record
    struct base_cursor c = base_cursor(index->section->bytes);
    while (base_cursor_left(&c) >= 4) {
        uint64_t offset = base_cursor_offset(&c);
        uint64_t length = base_read_u32(&c);
        if (length == 0) {
            if (want_cies && add_terminator(index, offset, record_offset, error))
                return -1;
            continue;
        }
        record_offset = offset;
        bool is_64 = length == UINT32_MAX;
        if (is_64)
            length = base_read_u64(&c);
        uint64_t id_offset = base_cursor_offset(&c);
        struct base_bytes body = base_read_bytes(&c, length);
        if (c.failed)
            break;
        struct base_cursor record = {body.data, body.data, body.data + body.size, false, false};
        uint64_t id = is_64 ? base_read_u64(&record) : base_read_u32(&record);
        bool is_cie = is_eh ? id == 0 : id == (is_64 ? UINT64_MAX : UINT32_MAX);
        if (record.failed || is_cie != want_cies)
            continue;
        if (is_cie) {
            struct check_walk_cie *cie = BASE_ADD(&index->cies);
            if (!cie)
                return no_memory(error);
            *cie = (struct check_walk_cie){.offset = offset};
            read_cie(index, &record, cie);
        } else {
            struct check_walk_fde fde = {.offset = offset};
            bool is_read = read_fde(index, &record, is_eh ? id_offset - id : id, &fde);
            struct check_walk_fde *place = is_read ? BASE_ADD(&index->fdes) : NULL;
            if (place)
                *place = fde;
            else if (is_read)
                return no_memory(error);
        }
    }
    return 0;
}

static int compare_fdes(const void *left, const void *right)
{
    const struct check_walk_fde *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int find_overlaps(struct check_walk_index *index, struct base_error *error)
{
    if (!index->fdes.count)
        return 0;
    qsort(index->fdes.items, index->fdes.count, sizeof *index->fdes.items, compare_fdes);
    index->furthest_end = calloc(index->fdes.count, sizeof *index->furthest_end);
    if (!index->furthest_end)
        return no_memory(error);
    size_t reaching = 0; // the FDE that reaches furthest so far
    for (size_t i = 0; i < index->fdes.count; i++) {
        struct check_walk_fde *fde = &index->fdes.items[i];
        // As it stands in the section, one with the Thumb bit ends a byte later: in the next one.
        const struct check_walk_fde *furthest = &index->fdes.items[reaching];
        if (i && fde->start < furthest->end + furthest->has_thumb_bit)
            fde->overlaps = index->fdes.items[reaching].overlaps = true;
        if (fde->end >= index->fdes.items[reaching].end)
            reaching = i;
        index->furthest_end[i] = index->fdes.items[reaching].end;
    }
    return 0;
}

int check_walk_section(const struct input_image *image, const struct input_frame_section *section,
                       struct check_walk_index *index, struct base_error *error)
{
    *index = (struct check_walk_index){.image = image, .section = section};
    if (read_records(index, true, error) || read_records(index, false, error) || find_overlaps(index, error)) {
        check_walk_free(index);
        return -1;
    }
    return 0;
}

void check_walk_free(struct check_walk_index *index)
{
    base_vector_free(&index->cies.vector);
    base_vector_free(&index->fdes.vector);
    free(index->furthest_end);
    base_vector_free(&index->terminators.vector);
    *index = (struct check_walk_index){0};
}

const struct check_walk_fde *check_walk_find(const struct check_walk_index *index, uint64_t pc)
{
    size_t low = 0, high = index->fdes.count; // the first FDE that starts behind pc
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->fdes.items[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const struct check_walk_fde *found = NULL;
    while (low-- > 0 && index->furthest_end[low] > pc) {
        const struct check_walk_fde *fde = &index->fdes.items[low];
        if (found && fde->start != found->start)
            break;
        if (fde->end > pc)
            found = fde;
    }
    return found;
}
