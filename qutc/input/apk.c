// SPDX-License-Identifier: Apache-2.0
// ELF files inside a zip archive. Only stored (uncompressed) ones count: those are what Android's linker maps straight
// out of an APK. A compressed library is extracted at installation, and is found there; here it is only counted.
#include <elf.h>
#include <stdlib.h>

#include "qutc/input/inputs_list.h"

enum {
    END_BYTES = 22,
    END_COMMENT_MAX = 0xffff,
    END64_LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    IMAGES_MAX = 4096, // per archive
    METHOD_STORED = 0,
    FLAG_ENCRYPTED = 1,
    EXTRA_ZIP64 = 1,
};

#define END_MAGIC     0x06054b50U
#define END64_MAGIC   0x06064b50U
#define LOCATOR_MAGIC 0x07064b50U
#define ENTRY_MAGIC   0x02014b50U
#define LOCAL_MAGIC   0x04034b50U

static const char directory_name[] = "zip directory";

struct directory {
    uint64_t offset;
    uint64_t size;
    uint64_t entries;
};

struct entry {
    uint16_t flags;
    uint16_t method;
    uint64_t packed_bytes;
    uint64_t size_bytes;
    uint64_t local_offset;
    struct qutc_bytes name;
};

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

static void read_zip64_end(struct qutc_bytes file, uint64_t end_offset, struct directory *directory)
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
    if (!cursor.failed)
        *directory = (struct directory){offset, size, entries};
}

static int find_directory(struct qutc_bytes file, struct directory *directory, struct qutc_error *error)
{
    uint64_t end_offset;
    if (!find_end(file, &end_offset))
        return qutc_fail(error, QUTC_ERR_MALFORMED, directory_name, 0, "no end record: cut short, or no zip archive");
    struct qutc_cursor cursor = at(file, end_offset + 10);
    directory->entries = qutc_read_u16(&cursor);
    directory->size = qutc_read_u32(&cursor);
    directory->offset = qutc_read_u32(&cursor);
    if (directory->entries == UINT16_MAX || directory->size == UINT32_MAX || directory->offset == UINT32_MAX)
        read_zip64_end(file, end_offset, directory);
    if (directory->offset > end_offset || directory->size > end_offset - directory->offset)
        return qutc_fail(error, QUTC_ERR_TRUNCATED, directory_name, directory->offset,
                         "size 0x%jx: not before the end record", (uintmax_t)directory->size);
    return 0;
}

// Fields that did not fit 32 bits follow, in this order, only as far as they are needed.
static void read_zip64_extra(struct qutc_bytes extra, struct entry *entry)
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

static bool read_entry(struct qutc_cursor *cursor, struct entry *entry)
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

// Where a stored entry's data is, if it lies in the file and begins as an ELF file does.
static bool find_elf(struct qutc_bytes file, const struct entry *entry, uint64_t *offset)
{
    if (entry->method != METHOD_STORED || (entry->flags & FLAG_ENCRYPTED) || entry->packed_bytes != entry->size_bytes ||
        entry->size_bytes < EI_NIDENT)
        return false;
    struct qutc_cursor cursor = at(file, entry->local_offset);
    uint32_t magic = qutc_read_u32(&cursor);
    qutc_cursor_skip(&cursor, LOCAL_BYTES - 4 - 4);
    uint16_t name_size = qutc_read_u16(&cursor);
    uint16_t extra_size = qutc_read_u16(&cursor);
    qutc_cursor_skip(&cursor, (uint64_t)name_size + extra_size);
    *offset = qutc_cursor_offset(&cursor);
    struct qutc_bytes data = qutc_read_bytes(&cursor, entry->size_bytes);
    return magic == LOCAL_MAGIC && !cursor.failed && memcmp(data.data, ELFMAG, SELFMAG) == 0;
}

static bool is_compressed_library(const struct entry *entry)
{
    return entry->method != METHOD_STORED && entry->name.size > 3 &&
           memcmp(entry->name.data + entry->name.size - 3, ".so", 3) == 0;
}

static int add_member(struct qutc_inputs *inputs, const struct qutc_input_file *file, const struct entry *entry,
                      uint64_t offset, struct qutc_error *error)
{
    char *member = strndup((const char *)entry->name.data, entry->name.size);
    if (!member)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, directory_name, 0, "a name");
    int result = qutc_inputs_add_file(inputs, file, member, offset, entry->size_bytes, error);
    free(member);
    return result;
}

static int add_members(struct qutc_inputs *inputs, const struct qutc_input_file *file, struct qutc_bytes bytes,
                       int64_t only_offset, size_t *found, struct qutc_error *error)
{
    struct directory directory = {0};
    struct entry entry = {0};
    uint64_t offset = 0;
    if (find_directory(bytes, &directory, error))
        return -1;
    struct qutc_cursor cursor = qutc_cursor((struct qutc_bytes){bytes.data + directory.offset, (size_t)directory.size});
    for (uint64_t i = 0; i < directory.entries && qutc_cursor_left(&cursor); i++) {
        uint64_t entry_offset = qutc_cursor_offset(&cursor);
        if (!read_entry(&cursor, &entry))
            return qutc_fail(error, QUTC_ERR_MALFORMED, directory_name, entry_offset, "entry %ju", (uintmax_t)i);
        if (is_compressed_library(&entry) && only_offset == QUTC_ARCHIVE_ALL)
            inputs->skipped_compressed++;
        if (!find_elf(bytes, &entry, &offset))
            continue;
        if (only_offset != QUTC_ARCHIVE_ALL &&
            ((uint64_t)only_offset < offset || (uint64_t)only_offset - offset >= entry.size_bytes))
            continue;
        if ((*found)++ == IMAGES_MAX)
            return qutc_fail(error, QUTC_ERR_LIMIT, directory_name, entry_offset, "more than %d ELF files", IMAGES_MAX);
        if (add_member(inputs, file, &entry, offset, error))
            return -1;
    }
    return 0;
}

int qutc_inputs_add_archive(struct qutc_inputs *inputs, const struct qutc_input_file *file, int64_t only_offset,
                            size_t *found, struct qutc_error *error)
{
    struct qutc_file_map map;
    *found = 0;
    int result = qutc_file_map_open(&map, file->path, 0, 0, QUTC_FILE_MAPPED, error);
    if (result == 0)
        result = add_members(inputs, file, map.bytes, only_offset, found, error);
    qutc_file_map_close(&map);
    return result;
}
