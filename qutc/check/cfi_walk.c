// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/cfi_walk.h"

#include <dwarf.h>
#include <stdlib.h>

enum {
    WIDE_REGISTER = 0x10000,
    FORMAT_MASK = 0x0f,
    RELATION_MASK = 0x70,
};

static uint64_t read_encoded(const struct qutc_frame_section *section, struct qutc_cursor *c, uint8_t encoding,
                             unsigned address_bytes)
{
    uint64_t at = section->vaddr + (uint64_t)(c->at - section->bytes.data);
    uint64_t value;
    switch (encoding & FORMAT_MASK) {
    case DW_EH_PE_absptr: value = qutc_read_uint(c, address_bytes); break;
    case DW_EH_PE_uleb128: value = qutc_read_uleb(c); break;
    case DW_EH_PE_udata2: value = qutc_read_u16(c); break;
    case DW_EH_PE_udata4: value = qutc_read_u32(c); break;
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: value = qutc_read_u64(c); break;
    case DW_EH_PE_sleb128: value = (uint64_t)qutc_read_sleb(c); break;
    case DW_EH_PE_sdata2: value = (uint64_t)(int16_t)qutc_read_u16(c); break;
    case DW_EH_PE_sdata4: value = (uint64_t)(int32_t)qutc_read_u32(c); break;
    default: qutc_cursor_fail(c); return 0;
    }
    switch (encoding & RELATION_MASK) {
    case 0: break;
    case DW_EH_PE_pcrel: value += at; break;
    case DW_EH_PE_textrel: value += section->text_base_vaddr; break;
    case DW_EH_PE_datarel: value += section->data_base_vaddr; break;
    default: qutc_cursor_fail(c); return 0;
    }
    return address_bytes == 4 ? value & UINT32_MAX : value;
}

static void read_register(struct qutc_cursor *c, struct qutc_walk_instruction *in)
{
    in->reg = qutc_read_uleb(c);
    if (in->reg >= WIDE_REGISTER)
        in->wide_register = true;
}

bool qutc_walk_next(const struct qutc_walk_index *index, const struct qutc_walk_cie *cie, struct qutc_cursor *c,
                    struct qutc_walk_instruction *in)
{
    if (c->failed || !qutc_cursor_left(c))
        return false;
    *in = (struct qutc_walk_instruction){.offset = (uint64_t)(c->at - index->section->bytes.data)};
    in->opcode = qutc_read_u8(c);
    if (in->opcode & 0xc0) {
        uint8_t low = in->opcode & 0x3f;
        in->opcode &= 0xc0;
        if (in->opcode == DW_CFA_advance_loc)
            in->advance_bytes = low * cie->code_align;
        else if (in->opcode == DW_CFA_offset)
            qutc_read_uleb(c);
        return !c->failed;
    }
    switch (in->opcode) {
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
    case QUTC_WALK_NEGATE_RA_STATE: break;
    case DW_CFA_set_loc: in->set_pc = read_encoded(index->section, c, cie->pointer_encoding, cie->address_bytes); break;
    case DW_CFA_advance_loc1: in->advance_bytes = qutc_read_u8(c) * cie->code_align; break;
    case DW_CFA_advance_loc2: in->advance_bytes = qutc_read_u16(c) * cie->code_align; break;
    case DW_CFA_advance_loc4: in->advance_bytes = qutc_read_u32(c) * cie->code_align; break;
    case DW_CFA_MIPS_advance_loc8: in->advance_bytes = qutc_read_u64(c) * cie->code_align; break;
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
        qutc_read_uleb(c); // a signed number has the same length
        break;
    case DW_CFA_register:
        read_register(c, in);
        read_register(c, in);
        break;
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_GNU_args_size: qutc_read_uleb(c); break;
    case DW_CFA_def_cfa_expression: qutc_cursor_skip(c, qutc_read_uleb(c)); break;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        read_register(c, in);
        qutc_cursor_skip(c, qutc_read_uleb(c));
        break;
    default: qutc_cursor_fail(c);
    }
    return !c->failed;
}

static uint64_t undefined_register(const struct qutc_walk_instruction *in)
{
    return in->opcode == DW_CFA_undefined && in->reg < 64 ? (uint64_t)1 << in->reg : 0;
}

struct qutc_cursor qutc_walk_code(const struct qutc_walk_index *index, uint64_t code_offset, uint64_t code_size)
{
    return qutc_cursor((struct qutc_bytes){index->section->bytes.data + code_offset, (size_t)code_size});
}

static int grow(void **items, size_t count, size_t *capacity, size_t item_bytes, struct qutc_error *error)
{
    if (count < *capacity)
        return 0;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *moved = reallocarray(*items, wanted, item_bytes);
    if (!moved)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "index of a frame section");
    *items = moved;
    *capacity = wanted;
    return 0;
}

// c stands behind the CIE id and ends with the record.
static void read_cie(struct qutc_walk_index *index, struct qutc_cursor *c, struct qutc_walk_cie *cie)
{
    uint8_t version = qutc_read_u8(c);
    const char *augmentation = qutc_read_string(c);
    if (!augmentation)
        return;
    cie->augmentation_offset = (uint64_t)((const uint8_t *)augmentation - index->section->bytes.data);
    cie->address_bytes = index->image->arch->word_bytes;
    if (version >= 4) {
        cie->address_bytes = qutc_read_u8(c);
        if (qutc_read_u8(c) != 0) // segment selectors
            return;
    }
    if (augmentation[0] == 'e' && augmentation[1] == 'h') {
        qutc_cursor_skip(c, cie->address_bytes);
        augmentation += 2;
    }
    cie->code_align = qutc_read_uleb(c);
    qutc_read_sleb(c);
    if (version == 1)
        qutc_read_u8(c);
    else
        qutc_read_uleb(c);
    if (*augmentation == 'z') {
        cie->sized_augmentation = true;
        struct qutc_bytes data = qutc_read_bytes(c, qutc_read_uleb(c));
        struct qutc_cursor a = {index->section->bytes.data, data.data, data.data + data.size, false, false};
        for (const char *letter = augmentation + 1; *letter; letter++) {
            if (*letter == 'R') {
                cie->pointer_encoding = qutc_read_u8(&a);
            } else if (*letter == 'L') {
                qutc_read_u8(&a);
            } else if (*letter == 'P') {
                uint8_t encoding = qutc_read_u8(&a);
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
    cie->code_size = qutc_cursor_left(c);
    cie->readable = true;

    struct qutc_walk_instruction in;
    struct qutc_cursor code = qutc_walk_code(index, cie->code_offset, cie->code_size);
    while (qutc_walk_next(index, cie, &code, &in)) {
        cie->has_negate |= in.opcode == QUTC_WALK_NEGATE_RA_STATE;
        cie->undefined |= undefined_register(&in);
    }
}

static int compare_cie(const void *key, const void *item)
{
    uint64_t offset = *(const uint64_t *)key;
    const struct qutc_walk_cie *cie = item;
    return offset < cie->offset ? -1 : offset > cie->offset;
}

static bool read_fde(struct qutc_walk_index *index, struct qutc_cursor *c, uint64_t cie_offset,
                     struct qutc_walk_fde *fde)
{
    const struct qutc_walk_cie *cie =
        index->cie_count ? bsearch(&cie_offset, index->cies, index->cie_count, sizeof *cie, compare_cie) : NULL;
    if (!cie || !cie->readable)
        return false;
    fde->cie = (uint32_t)(cie - index->cies);
    fde->relative_base = (cie->pointer_encoding & RELATION_MASK) > DW_EH_PE_pcrel;
    fde->start = read_encoded(index->section, c, cie->pointer_encoding, cie->address_bytes);
    uint64_t size = read_encoded(index->section, c, cie->pointer_encoding & FORMAT_MASK, cie->address_bytes);
    fde->end = fde->start + size;
    if (cie->sized_augmentation)
        qutc_cursor_skip(c, qutc_read_uleb(c));
    if (c->failed || fde->end <= fde->start)
        return false;
    fde->code_offset = (uint64_t)(c->at - index->section->bytes.data);
    fde->code_size = qutc_cursor_left(c);
    fde->has_negate = cie->has_negate;
    fde->undefined = cie->undefined;

    struct qutc_walk_instruction in;
    struct qutc_cursor code = qutc_walk_code(index, fde->code_offset, fde->code_size);
    while (qutc_walk_next(index, cie, &code, &in)) {
        fde->has_negate |= in.opcode == QUTC_WALK_NEGATE_RA_STATE;
        fde->undefined |= undefined_register(&in);
        fde->has_set_loc |= in.opcode == DW_CFA_set_loc;
        fde->has_wide_register |= in.wide_register;
        fde->advances += in.opcode == DW_CFA_set_loc || in.advance_bytes != 0;
    }
    fde->is_malformed = code.failed;
    return true;
}

static int add_terminator(struct qutc_walk_index *index, uint64_t offset, uint64_t record_offset,
                          struct qutc_error *error)
{
    if (record_offset == UINT64_MAX) {
        index->leading_bytes = offset + 4;
        return 0;
    }
    if (grow((void **)&index->terminators, index->terminator_count, &index->terminator_capacity,
             sizeof *index->terminators, error))
        return -1;
    index->terminators[index->terminator_count++] = (struct qutc_walk_terminator){offset, record_offset};
    return 0;
}

// The CIEs first: an FDE may stand before its CIE.
static int read_records(struct qutc_walk_index *index, bool want_cies, struct qutc_error *error)
{
    bool is_eh = index->section->kind == QUTC_FRAME_EH;
    uint64_t record_offset = UINT64_MAX; // of the last record
    struct qutc_cursor c = qutc_cursor(index->section->bytes);
    while (qutc_cursor_left(&c) >= 4) {
        uint64_t offset = qutc_cursor_offset(&c);
        uint64_t length = qutc_read_u32(&c);
        if (length == 0) {
            if (want_cies && add_terminator(index, offset, record_offset, error))
                return -1;
            continue;
        }
        record_offset = offset;
        bool is_64 = length == UINT32_MAX;
        if (is_64)
            length = qutc_read_u64(&c);
        uint64_t id_offset = qutc_cursor_offset(&c);
        struct qutc_bytes body = qutc_read_bytes(&c, length);
        if (c.failed)
            break;
        struct qutc_cursor record = {body.data, body.data, body.data + body.size, false, false};
        uint64_t id = is_64 ? qutc_read_u64(&record) : qutc_read_u32(&record);
        bool is_cie = is_eh ? id == 0 : id == (is_64 ? UINT64_MAX : UINT32_MAX);
        if (record.failed || is_cie != want_cies)
            continue;
        if (is_cie) {
            if (grow((void **)&index->cies, index->cie_count, &index->cie_capacity, sizeof *index->cies, error))
                return -1;
            struct qutc_walk_cie cie = {.offset = offset};
            read_cie(index, &record, &cie);
            index->cies[index->cie_count++] = cie;
        } else {
            if (grow((void **)&index->fdes, index->fde_count, &index->fde_capacity, sizeof *index->fdes, error))
                return -1;
            struct qutc_walk_fde fde = {.offset = offset};
            if (read_fde(index, &record, is_eh ? id_offset - id : id, &fde))
                index->fdes[index->fde_count++] = fde;
        }
    }
    return 0;
}

static int compare_fdes(const void *left, const void *right)
{
    const struct qutc_walk_fde *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int find_overlaps(struct qutc_walk_index *index, struct qutc_error *error)
{
    if (!index->fde_count)
        return 0;
    qsort(index->fdes, index->fde_count, sizeof *index->fdes, compare_fdes);
    index->furthest_end = calloc(index->fde_count, sizeof *index->furthest_end);
    if (!index->furthest_end)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "index of a frame section");
    size_t reaching = 0; // the FDE that reaches furthest so far
    for (size_t i = 0; i < index->fde_count; i++) {
        struct qutc_walk_fde *fde = &index->fdes[i];
        if (i && fde->start < index->fdes[reaching].end)
            fde->overlaps = index->fdes[reaching].overlaps = true;
        if (fde->end >= index->fdes[reaching].end)
            reaching = i;
        index->furthest_end[i] = index->fdes[reaching].end;
    }
    return 0;
}

int qutc_walk_section(const struct qutc_image *image, const struct qutc_frame_section *section,
                      struct qutc_walk_index *index, struct qutc_error *error)
{
    *index = (struct qutc_walk_index){.image = image, .section = section};
    if (read_records(index, true, error) || read_records(index, false, error) || find_overlaps(index, error)) {
        qutc_walk_free(index);
        return -1;
    }
    return 0;
}

void qutc_walk_free(struct qutc_walk_index *index)
{
    free(index->cies);
    free(index->fdes);
    free(index->furthest_end);
    free(index->terminators);
    *index = (struct qutc_walk_index){0};
}

const struct qutc_walk_fde *qutc_walk_find(const struct qutc_walk_index *index, uint64_t pc)
{
    size_t low = 0, high = index->fde_count; // the first FDE that starts behind pc
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->fdes[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const struct qutc_walk_fde *found = NULL;
    while (low-- > 0 && index->furthest_end[low] > pc) {
        const struct qutc_walk_fde *fde = &index->fdes[low];
        if (found && fde->start != found->start)
            break;
        if (fde->end > pc)
            found = fde;
    }
    return found;
}
