// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/zip.h"

enum {
    END_BYTES = 22,
    END_COMMENT_MAX = 0xffff,
    END64_LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    METHOD_STORED = 0,
    FLAG_ENCRYPTED = 1,
    EXTRA_ZIP64 = 1,
};

#define END_MAGIC     0x06054b50U
#define END64_MAGIC   0x06064b50U
#define LOCATOR_MAGIC 0x07064b50U
#define ENTRY_MAGIC   0x02014b50U
#define LOCAL_MAGIC   0x04034b50U

const char input_zip_directory_name[] = "zip directory";

static struct base_cursor at(struct base_bytes file, uint64_t offset)
{
    struct base_cursor cursor = base_cursor(file);
    base_cursor_seek(&cursor, offset);
    return cursor;
}

// The end record is followed by a comment that reaches exactly to the end of the file.
static bool find_end(struct base_bytes file, uint64_t *offset)
{
    for (size_t comment = 0; comment <= END_COMMENT_MAX && comment + END_BYTES <= file.size; comment++) {
        *offset = file.size - END_BYTES - comment;
        struct base_cursor cursor = at(file, *offset);
        if (base_read_u32(&cursor) != END_MAGIC)
            continue;
        base_cursor_skip(&cursor, 16);
        if (base_read_u16(&cursor) == comment)
            return true;
    }
    return false;
}

static void read_zip64_end(struct base_bytes file, uint64_t end_offset, struct input_zip *zip)
{
    if (end_offset < END64_LOCATOR_BYTES)
        return;
    struct base_cursor cursor = at(file, end_offset - END64_LOCATOR_BYTES);
    if (base_read_u32(&cursor) != LOCATOR_MAGIC)
        return;
    base_cursor_skip(&cursor, 4);
    cursor = at(file, base_read_u64(&cursor));
    if (base_read_u32(&cursor) != END64_MAGIC)
        return;
    base_cursor_skip(&cursor, 28);
    uint64_t entries = base_read_u64(&cursor);
    uint64_t size = base_read_u64(&cursor);
    uint64_t offset = base_read_u64(&cursor);
    if (cursor.failed)
        return;
    zip->directory_offset = offset;
    zip->directory_size = size;
    zip->entry_count = entries;
}

int input_zip_open(struct input_zip *zip, struct base_bytes file, struct base_error *error)
{
    uint64_t end_offset;
    *zip = (struct input_zip){.file = file};
    if (!find_end(file, &end_offset))
        return base_fail(error, BASE_ERR_MALFORMED, input_zip_directory_name, 0,
                         "no end record: cut short, or no zip archive");
    struct base_cursor cursor = at(file, end_offset + 10);
    zip->entry_count = base_read_u16(&cursor);
    zip->directory_size = base_read_u32(&cursor);
    zip->directory_offset = base_read_u32(&cursor);
    if (zip->entry_count == UINT16_MAX || zip->directory_size == UINT32_MAX || zip->directory_offset == UINT32_MAX)
        read_zip64_end(file, end_offset, zip);
    if (zip->directory_offset > end_offset || zip->directory_size > end_offset - zip->directory_offset)
        return base_fail(error, BASE_ERR_TRUNCATED, input_zip_directory_name, zip->directory_offset,
                         "size 0x%jx: not before the end record", (uintmax_t)zip->directory_size);
    zip->entries = base_cursor((struct base_bytes){file.data + zip->directory_offset, (size_t)zip->directory_size});
    return 0;
}

// Fields that did not fit 32 bits follow, in this order, only as far as they are needed.
static void read_zip64_extra(struct base_bytes extra, struct input_zip_entry *entry)
{
    struct base_cursor cursor = base_cursor(extra);
    while (base_cursor_left(&cursor) >= 4) {
        uint16_t id = base_read_u16(&cursor);
        uint16_t size = base_read_u16(&cursor);
        struct base_cursor field = base_cursor(base_read_bytes(&cursor, size));
        if (id != EXTRA_ZIP64)
            continue;
        if (entry->size_bytes == UINT32_MAX)
            entry->size_bytes = base_read_u64(&field);
        if (entry->packed_bytes == UINT32_MAX)
            entry->packed_bytes = base_read_u64(&field);
        if (entry->local_offset == UINT32_MAX)
            entry->local_offset = base_read_u64(&field);
        return;
    }
}

static bool read_entry(struct base_cursor *cursor, struct input_zip_entry *entry)
{
    if (base_cursor_left(cursor) < ENTRY_BYTES || base_read_u32(cursor) != ENTRY_MAGIC)
        return false;
    base_cursor_skip(cursor, 4);
    entry->flags = base_read_u16(cursor);
    entry->method = base_read_u16(cursor);
    base_cursor_skip(cursor, 8);
    entry->packed_bytes = base_read_u32(cursor);
    entry->size_bytes = base_read_u32(cursor);
    uint16_t name_size = base_read_u16(cursor);
    uint16_t extra_size = base_read_u16(cursor);
    uint16_t comment_size = base_read_u16(cursor);
    base_cursor_skip(cursor, 8);
    entry->local_offset = base_read_u32(cursor);
    entry->name = base_read_bytes(cursor, name_size);
    struct base_bytes extra = base_read_bytes(cursor, extra_size);
    base_cursor_skip(cursor, comment_size);
    if (cursor->failed)
        return false;
    read_zip64_extra(extra, entry);
    return true;
}

int input_zip_next(struct input_zip *zip, struct input_zip_entry *entry, struct base_error *error)
{
    if (zip->next == zip->entry_count || !base_cursor_left(&zip->entries))
        return 0;
    uint64_t offset = base_cursor_offset(&zip->entries);
    if (!read_entry(&zip->entries, entry))
        return base_fail(error, BASE_ERR_MALFORMED, input_zip_directory_name, offset, "entry %ju",
                         (uintmax_t)zip->next);
    zip->next++;
    return 1;
}

bool input_zip_is_stored(const struct input_zip_entry *entry)
{
    return entry->method == METHOD_STORED && !(entry->flags & FLAG_ENCRYPTED) &&
           entry->packed_bytes == entry->size_bytes;
}

bool input_zip_find_data(struct base_bytes file, const struct input_zip_entry *entry, uint64_t *offset)
{
    struct base_cursor cursor = at(file, entry->local_offset);
    uint32_t magic = base_read_u32(&cursor);
    base_cursor_skip(&cursor, LOCAL_BYTES - 4 - 4);
    uint16_t name_size = base_read_u16(&cursor);
    uint16_t extra_size = base_read_u16(&cursor);
    base_cursor_skip(&cursor, (uint64_t)name_size + extra_size);
    *offset = base_cursor_offset(&cursor);
    base_cursor_skip(&cursor, entry->size_bytes);
    return magic == LOCAL_MAGIC && !cursor.failed;
}
