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

const char qutc_zip_directory_name[] = "zip directory";

static struct qutc_cursor at(struct qutc_bytes file, uint64_t offset)
{
    struct qutc_cursor cursor = qutc_cursor(file);
    qutc_cursor_seek(&cursor, offset);
    return cursor;
}

// The end record is followed by a comment that reaches exactly to the end of the file.
static bool find_end(struct qutc_bytes file, uint64_t *offset)
{
    for (size_t comment = 0; comment <= END_COMMENT_MAX && comment + END_BYTES <= file.size; comment++) {
        *offset = file.size - END_BYTES - comment;
        struct qutc_cursor cursor = at(file, *offset);
        if (qutc_read_u32(&cursor) != END_MAGIC)
            continue;
        qutc_cursor_skip(&cursor, 16);
        if (qutc_read_u16(&cursor) == comment)
            return true;
    }
    return false;
}

static void read_zip64_end(struct qutc_bytes file, uint64_t end_offset, struct qutc_zip *zip)
{
    if (end_offset < END64_LOCATOR_BYTES)
        return;
    struct qutc_cursor cursor = at(file, end_offset - END64_LOCATOR_BYTES);
    if (qutc_read_u32(&cursor) != LOCATOR_MAGIC)
        return;
    qutc_cursor_skip(&cursor, 4);
    cursor = at(file, qutc_read_u64(&cursor));
    if (qutc_read_u32(&cursor) != END64_MAGIC)
        return;
    qutc_cursor_skip(&cursor, 28);
    uint64_t entries = qutc_read_u64(&cursor);
    uint64_t size = qutc_read_u64(&cursor);
    uint64_t offset = qutc_read_u64(&cursor);
    if (cursor.failed)
        return;
    zip->directory_offset = offset;
    zip->directory_size = size;
    zip->entry_count = entries;
}

int qutc_zip_open(struct qutc_zip *zip, struct qutc_bytes file, struct qutc_error *error)
{
    uint64_t end_offset;
    *zip = (struct qutc_zip){.file = file};
    if (!find_end(file, &end_offset))
        return qutc_fail(error, QUTC_ERR_MALFORMED, qutc_zip_directory_name, 0,
                         "no end record: cut short, or no zip archive");
    struct qutc_cursor cursor = at(file, end_offset + 10);
    zip->entry_count = qutc_read_u16(&cursor);
    zip->directory_size = qutc_read_u32(&cursor);
    zip->directory_offset = qutc_read_u32(&cursor);
    if (zip->entry_count == UINT16_MAX || zip->directory_size == UINT32_MAX || zip->directory_offset == UINT32_MAX)
        read_zip64_end(file, end_offset, zip);
    if (zip->directory_offset > end_offset || zip->directory_size > end_offset - zip->directory_offset)
        return qutc_fail(error, QUTC_ERR_TRUNCATED, qutc_zip_directory_name, zip->directory_offset,
                         "size 0x%jx: not before the end record", (uintmax_t)zip->directory_size);
    zip->entries = qutc_cursor((struct qutc_bytes){file.data + zip->directory_offset, (size_t)zip->directory_size});
    return 0;
}

// Fields that did not fit 32 bits follow, in this order, only as far as they are needed.
static void read_zip64_extra(struct qutc_bytes extra, struct qutc_zip_entry *entry)
{
    struct qutc_cursor cursor = qutc_cursor(extra);
    while (qutc_cursor_left(&cursor) >= 4) {
        uint16_t id = qutc_read_u16(&cursor);
        uint16_t size = qutc_read_u16(&cursor);
        struct qutc_cursor field = qutc_cursor(qutc_read_bytes(&cursor, size));
        if (id != EXTRA_ZIP64)
            continue;
        if (entry->size_bytes == UINT32_MAX)
            entry->size_bytes = qutc_read_u64(&field);
        if (entry->packed_bytes == UINT32_MAX)
            entry->packed_bytes = qutc_read_u64(&field);
        if (entry->local_offset == UINT32_MAX)
            entry->local_offset = qutc_read_u64(&field);
        return;
    }
}

static bool read_entry(struct qutc_cursor *cursor, struct qutc_zip_entry *entry)
{
    if (qutc_cursor_left(cursor) < ENTRY_BYTES || qutc_read_u32(cursor) != ENTRY_MAGIC)
        return false;
    qutc_cursor_skip(cursor, 4);
    entry->flags = qutc_read_u16(cursor);
    entry->method = qutc_read_u16(cursor);
    qutc_cursor_skip(cursor, 8);
    entry->packed_bytes = qutc_read_u32(cursor);
    entry->size_bytes = qutc_read_u32(cursor);
    uint16_t name_size = qutc_read_u16(cursor);
    uint16_t extra_size = qutc_read_u16(cursor);
    uint16_t comment_size = qutc_read_u16(cursor);
    qutc_cursor_skip(cursor, 8);
    entry->local_offset = qutc_read_u32(cursor);
    entry->name = qutc_read_bytes(cursor, name_size);
    struct qutc_bytes extra = qutc_read_bytes(cursor, extra_size);
    qutc_cursor_skip(cursor, comment_size);
    if (cursor->failed)
        return false;
    read_zip64_extra(extra, entry);
    return true;
}

int qutc_zip_next(struct qutc_zip *zip, struct qutc_zip_entry *entry, struct qutc_error *error)
{
    if (zip->next == zip->entry_count || !qutc_cursor_left(&zip->entries))
        return 0;
    uint64_t offset = qutc_cursor_offset(&zip->entries);
    if (!read_entry(&zip->entries, entry))
        return qutc_fail(error, QUTC_ERR_MALFORMED, qutc_zip_directory_name, offset, "entry %ju", (uintmax_t)zip->next);
    zip->next++;
    return 1;
}

bool qutc_zip_is_stored(const struct qutc_zip_entry *entry)
{
    return entry->method == METHOD_STORED && !(entry->flags & FLAG_ENCRYPTED) &&
           entry->packed_bytes == entry->size_bytes;
}

bool qutc_zip_find_data(struct qutc_bytes file, const struct qutc_zip_entry *entry, uint64_t *offset)
{
    struct qutc_cursor cursor = at(file, entry->local_offset);
    uint32_t magic = qutc_read_u32(&cursor);
    qutc_cursor_skip(&cursor, LOCAL_BYTES - 4 - 4);
    uint16_t name_size = qutc_read_u16(&cursor);
    uint16_t extra_size = qutc_read_u16(&cursor);
    qutc_cursor_skip(&cursor, (uint64_t)name_size + extra_size);
    *offset = qutc_cursor_offset(&cursor);
    qutc_cursor_skip(&cursor, entry->size_bytes);
    return magic == LOCAL_MAGIC && !cursor.failed;
}
