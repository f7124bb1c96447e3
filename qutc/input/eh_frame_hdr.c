// SPDX-License-Identifier: Apache-2.0
// The way without section headers: PT_GNU_EH_FRAME leads to .eh_frame_hdr, whose first pointer leads to .eh_frame.
#include <inttypes.h>

#include "qutc/base/encoded_pointer.h"
#include "qutc/input/image_store.h"

static const char section_name[] = ".eh_frame_hdr";

static int read_pointer(struct qutc_bytes header, uint64_t header_vaddr, const struct qutc_image *image,
                        uint64_t *pointer, struct qutc_error *error)
{
    struct qutc_cursor cursor = qutc_cursor(header);
    uint8_t version = qutc_read_u8(&cursor);
    uint8_t encoding = qutc_read_u8(&cursor);
    qutc_cursor_skip(&cursor, 2);
    if (cursor.failed || version != 1)
        return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 0, "version %u, %zu bytes", version, header.size);
    // In this section, datarel counts from the section itself.
    const struct qutc_pointer_bases bases = {header_vaddr, 0, header_vaddr, image->is_64};
    if (!qutc_read_encoded(&cursor, encoding, image->arch->word_bytes, &bases, pointer) || cursor.failed ||
        encoding == PE_OMIT)
        return qutc_fail(error, QUTC_ERR_MALFORMED, section_name, 4, "pointer with encoding 0x%x", encoding);
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
