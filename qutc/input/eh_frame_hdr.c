// SPDX-License-Identifier: Apache-2.0
// The way without section headers: PT_GNU_EH_FRAME leads to .eh_frame_hdr, whose first pointer leads to .eh_frame.
#include <inttypes.h>

#include "base/encoded_pointer_inline.h"
#include "qutc/input/image_store.h"

static const char section_name[] = ".eh_frame_hdr";

static int read_pointer(struct base_bytes header, uint64_t header_vaddr, const struct input_image *image,
                        uint64_t *pointer, struct base_error *error)
{
    struct base_cursor cursor = base_cursor(header);
    uint8_t version = base_read_u8(&cursor);
    uint8_t encoding = base_read_u8(&cursor);
    base_cursor_skip(&cursor, 2);
    if (cursor.failed || version != 1)
        return base_fail(error, BASE_ERR_MALFORMED, section_name, 0, "version %u, %zu bytes", version, header.size);
    // In this section, datarel counts from the section itself.
    const struct base_pointer_bases bases = {header_vaddr, 0, header_vaddr, image->is_64};
    if (!base_read_encoded(&cursor, encoding, image->arch->word_bytes, &bases, pointer) || cursor.failed ||
        encoding == PE_OMIT)
        return base_fail(error, BASE_ERR_MALFORMED, section_name, 4, "pointer with encoding 0x%x", encoding);
    return 0;
}

// Nothing says how long .eh_frame is. Its records do, up to the one of length 0.
static size_t length_to_terminator(struct base_bytes bytes)
{
    struct base_cursor cursor = base_cursor(bytes);
    while (base_cursor_left(&cursor) >= 4) {
        uint64_t length = base_read_u32(&cursor);
        if (length == 0)
            return base_cursor_offset(&cursor);
        if (length == UINT32_MAX)
            length = base_read_u64(&cursor);
        base_cursor_skip(&cursor, length);
    }
    return bytes.size;
}

int input_find_eh_frame(const struct input_image *image, const struct input_elf_segment *segment,
                        struct base_bytes *bytes, uint64_t *vaddr, struct base_error *error)
{
    struct base_bytes header = input_elf_segment_bytes(&image->store->elf, segment);
    if (read_pointer(header, segment->vaddr, image, vaddr, error))
        return -1;
    *bytes = input_image_at(image, *vaddr);
    if (bytes->size == 0)
        return base_fail(error, BASE_ERR_MALFORMED, section_name, 4, "points to 0x%" PRIx64 ", where nothing is mapped",
                         *vaddr);
    bytes->size = length_to_terminator(*bytes);
    return 0;
}
