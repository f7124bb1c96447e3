// SPDX-License-Identifier: Apache-2.0
// The way without section headers: PT_GNU_EH_FRAME leads to .eh_frame_hdr, whose first pointer leads to .eh_frame.
#include <inttypes.h>

#include "qutc/input/image_store.h"

enum { // DW_EH_PE_*: low four bits the form, next three what it counts from
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
};

static const char section_name[] = ".eh_frame_hdr";

static uint64_t read_form(struct qutc_cursor *cursor, uint8_t form, unsigned word_bytes)
{
    switch (form) {
    case PE_ABSPTR: return qutc_read_uint(cursor, word_bytes);
    case PE_ULEB128: return qutc_read_uleb(cursor);
    case PE_UDATA2: return qutc_read_u16(cursor);
    case PE_UDATA4: return qutc_read_u32(cursor);
    case PE_UDATA8: return qutc_read_u64(cursor);
    case PE_SLEB128: return (uint64_t)qutc_read_sleb(cursor);
    case PE_SDATA2: return (uint64_t)(int64_t)(int16_t)qutc_read_u16(cursor);
    case PE_SDATA4: return (uint64_t)(int64_t)(int32_t)qutc_read_u32(cursor);
    case PE_SDATA8: return qutc_read_u64(cursor);
    default: qutc_cursor_fail(cursor); return 0;
    }
}

static int read_pointer(struct qutc_bytes header, uint64_t header_vaddr, const struct qutc_image *image,
                        uint64_t *pointer, struct qutc_error *error)
{
    struct qutc_cursor cursor = qutc_cursor(header);
    uint8_t version = qutc_read_u8(&cursor);
    uint8_t encoding = qutc_read_u8(&cursor);
    qutc_cursor_skip(&cursor, 2);
    if (cursor.failed || version != 1)
        return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 0, "version %u, %zu bytes", version, header.size);
    uint64_t value = read_form(&cursor, encoding & 0x0f, image->arch->word_bytes);
    if (cursor.failed)
        return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 4, "pointer with encoding 0x%x", encoding);
    switch (encoding & 0xf0) {
    case 0: break;
    case PE_PCREL: value += header_vaddr + 4; break;
    case PE_DATAREL: value += header_vaddr; break;
    default: return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 1, "pointer encoding 0x%x", encoding);
    }
    *pointer = image->is_64 ? value : (uint32_t)value;
    return 0;
}

// Nothing says how long .eh_frame is. Its records do, up to the one of length 0.
static size_t length_to_terminator(struct qutc_bytes bytes)
{
    struct qutc_cursor cursor = qutc_cursor(bytes);
    while (qutc_cursor_left(&cursor) >= 4) {
        uint64_t length = qutc_read_u32(&cursor);
        if (length == 0)
            return qutc_cursor_offset(&cursor);
        if (length == UINT32_MAX)
            length = qutc_read_u64(&cursor);
        qutc_cursor_skip(&cursor, length);
    }
    return bytes.size;
}

int qutc_find_eh_frame(const struct qutc_image *image, const struct qutc_elf_segment *segment, struct qutc_bytes *bytes,
                       uint64_t *vaddr, struct qutc_error *error)
{
    struct qutc_bytes header = qutc_elf_segment_bytes(&image->store->elf, segment);
    if (read_pointer(header, segment->vaddr, image, vaddr, error))
        return -1;
    *bytes = qutc_image_at(image, *vaddr);
    if (bytes->size == 0)
        return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 4, "points to 0x%" PRIx64 ", where nothing is mapped",
                         *vaddr);
    bytes->size = length_to_terminator(*bytes);
    return 0;
}
