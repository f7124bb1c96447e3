// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/dex.h"

#include <stdlib.h>

enum {
    ENDIAN_OFFSET = 40,
    ENDIAN_TAG = 0x12345678,
    STRINGS_OFFSET = 56, // size and offset of each table follow each other
    DATA_SIZE_OFFSET = 104,
    VERSION_FIRST = 35,
    VERSION_CONTAINER = 41,
    STRING_ID_BYTES = 4,
    TYPE_ID_BYTES = 4,
    METHOD_ID_BYTES = 8,
    CLASS_DEF_BYTES = 32,
    CLASS_DATA_OFFSET = 24, // in a class definition
    CODE_ITEM_BYTES = 16,
    CODE_UNIT_BYTES = 2,
    NAME_BYTES_MAX = 65535,
};

static const char section[] = "dex";

struct header {
    bool is_compact;
    unsigned version; // 35 to 41; of a compact one 0
    uint32_t file_bytes, header_bytes;
    struct dex_table strings, types, methods, classes;
    uint32_t data_bytes, data_offset;
    uint32_t container_bytes, header_offset; // 041
};

// 036 was never in a released Android.
static bool read_magic(struct base_bytes magic, struct header *header)
{
    if (magic.size < 8)
        return false;
    const uint8_t *at = magic.data;
    header->is_compact = memcmp(at, "cdex001", 8) == 0;
    if (header->is_compact)
        return true;
    if (memcmp(at, "dex\n0", 5) != 0 || at[5] < '0' || at[5] > '9' || at[6] < '0' || at[6] > '9' || at[7] != 0)
        return false;
    header->version = (unsigned)(at[5] - '0') * 10 + (unsigned)(at[6] - '0');
    return header->version >= VERSION_FIRST && header->version <= VERSION_CONTAINER && header->version != 36;
}

static struct dex_table read_table(struct base_cursor *cursor)
{
    uint32_t count = base_read_u32(cursor);
    return (struct dex_table){.count = count, .offset = base_read_u32(cursor)};
}

static int read_header(struct base_bytes bytes, uint64_t at, struct header *header, struct base_error *error)
{
    *header = (struct header){0};
    if (!read_magic(bytes, header))
        return base_fail(error, BASE_ERR_UNSUPPORTED, section, at, "neither dex 035, 037 to 041, nor cdex001");
    struct base_cursor cursor = base_cursor(bytes);
    base_cursor_seek(&cursor, DEX_IDENTITY_BYTES);
    header->file_bytes = base_read_u32(&cursor);
    header->header_bytes = base_read_u32(&cursor);
    uint32_t endian = base_read_u32(&cursor);
    base_cursor_seek(&cursor, STRINGS_OFFSET);
    header->strings = read_table(&cursor);
    header->types = read_table(&cursor);
    read_table(&cursor); // prototypes
    read_table(&cursor); // fields
    header->methods = read_table(&cursor);
    header->classes = read_table(&cursor);
    header->data_bytes = base_read_u32(&cursor);
    header->data_offset = base_read_u32(&cursor);
    uint32_t least = DEX_HEADER_BYTES;
    if (header->version == VERSION_CONTAINER) {
        header->container_bytes = base_read_u32(&cursor);
        header->header_offset = base_read_u32(&cursor);
        least = DEX_CONTAINER_HEADER_BYTES;
    }
    if (header->is_compact)
        least = DEX_COMPACT_HEADER_BYTES;
    if (cursor.failed)
        return base_fail(error, BASE_ERR_TRUNCATED, section, at, "header");
    if (endian != ENDIAN_TAG || header->header_bytes < least || header->file_bytes < header->header_bytes)
        return base_fail(error, BASE_ERR_MALFORMED, section, at, "header: endian 0x%x, %u bytes of %u", endian,
                         header->header_bytes, header->file_bytes);
    return 0;
}

static bool holds(struct base_bytes bytes, struct dex_table table, uint32_t entry_bytes)
{
    return table.count == 0 || (table.offset <= bytes.size && table.count <= (bytes.size - table.offset) / entry_bytes);
}

// The bytes that a header's offsets count from.
static int find_bytes(struct base_bytes file, const struct header *header, struct dex *dex, struct base_error *error)
{
    uint64_t offset = dex->header_offset, left = file.size - offset;
    if (header->file_bytes > left)
        return base_fail(error, BASE_ERR_TRUNCATED, section, offset, "0x%x bytes, 0x%jx are there", header->file_bytes,
                         (uintmax_t)left);
    dex->ids = (struct base_bytes){file.data + offset, header->file_bytes};
    dex->data = dex->ids;
    dex->data_offset = offset;
    if (header->version == VERSION_CONTAINER) {
        uint64_t start = offset - header->header_offset;
        if (header->header_offset > offset || header->container_bytes > file.size - start ||
            header->header_offset > header->container_bytes ||
            header->file_bytes > header->container_bytes - header->header_offset)
            return base_fail(error, BASE_ERR_MALFORMED, section, offset,
                             "container of 0x%x bytes, header at 0x%x of it", header->container_bytes,
                             header->header_offset);
        dex->ids = dex->data = (struct base_bytes){file.data + start, header->container_bytes};
        dex->data_offset = start;
    }
    if (header->is_compact) {
        if (header->data_offset > left || header->data_bytes > left - header->data_offset)
            return base_fail(error, BASE_ERR_TRUNCATED, section, offset, "shared data, 0x%x bytes at 0x%x",
                             header->data_bytes, header->data_offset);
        dex->data = (struct base_bytes){file.data + offset + header->data_offset, header->data_bytes};
        dex->data_offset = offset + header->data_offset;
    }
    return 0;
}

int dex_read(struct base_bytes file, uint64_t offset, struct dex *dex, struct base_error *error)
{
    struct header header;
    if (offset > file.size)
        return base_fail(error, BASE_ERR_TRUNCATED, section, offset, "header");
    struct base_bytes rest = {file.data + offset, (size_t)(file.size - offset)};
    if (read_header(rest, offset, &header, error) != 0)
        return -1;
    *dex = (struct dex){.header_offset = offset,
                        .size_bytes = header.file_bytes,
                        .is_compact = header.is_compact,
                        .strings = header.strings,
                        .types = header.types,
                        .methods = header.methods,
                        .classes = header.classes};
    if (find_bytes(file, &header, dex, error) != 0)
        return -1;
    if (!holds(dex->ids, dex->strings, STRING_ID_BYTES) || !holds(dex->ids, dex->types, TYPE_ID_BYTES) ||
        !holds(dex->ids, dex->methods, METHOD_ID_BYTES) || !holds(dex->ids, dex->classes, CLASS_DEF_BYTES))
        return base_fail(error, BASE_ERR_TRUNCATED, section, offset, "a table of ids ends behind the file");
    return 0;
}

uint64_t dex_extent(struct base_bytes bytes, uint64_t *before_bytes)
{
    struct header header;
    if (read_header(bytes, 0, &header, NULL) != 0)
        return 0;
    *before_bytes = header.header_offset;
    uint64_t size = (uint64_t)header.header_offset + header.file_bytes;
    uint64_t data_end = (uint64_t)header.data_offset + header.data_bytes;
    if (header.is_compact && data_end > size)
        size = data_end;
    return header.container_bytes > size ? header.container_bytes : size;
}

// The size of a compact code item does not fit its 11 bits: the rest of it stands before the item, the low half first
// when read backwards.
static uint64_t compact_units(struct base_bytes data, uint64_t at, uint16_t count_and_flags)
{
    enum { FLAG_MORE_UNITS = 1 << 4, COUNT_SHIFT = 5 };
    uint64_t units = count_and_flags >> COUNT_SHIFT;
    uint16_t more[2] = {0, 0}; // high, low
    if ((count_and_flags & FLAG_MORE_UNITS) && at >= sizeof more && at <= data.size)
        memcpy(more, data.data + at - sizeof more, sizeof more);
    return units + more[1] + ((uint64_t)more[0] << 16);
}

static int find_code(const struct dex *dex, uint64_t at, struct dex_code *code, struct base_error *error)
{
    struct base_cursor cursor = base_cursor(dex->data);
    base_cursor_seek(&cursor, at);
    uint64_t units;
    if (dex->is_compact) {
        base_cursor_skip(&cursor, 2); // registers, arguments, try blocks
        units = compact_units(dex->data, at, base_read_u16(&cursor));
    } else {
        base_cursor_skip(&cursor, CODE_ITEM_BYTES - 4);
        units = base_read_u32(&cursor);
    }
    uint64_t start = base_cursor_offset(&cursor);
    base_cursor_skip(&cursor, units * CODE_UNIT_BYTES);
    if (cursor.failed)
        return base_fail(error, BASE_ERR_TRUNCATED, section, dex->data_offset + at, "code of method %u", code->method);
    code->start = dex->data_offset + start;
    code->end = code->start + units * CODE_UNIT_BYTES;
    return 0;
}

// What is done with methods.
struct each {
    const struct dex *dex;
    bool is_declared; // all are taken, without their code
    dex_take_fn take;
    void *context;
    uint32_t class_index;
};

static int take_method(const struct each *each, struct dex_code *code, uint64_t offset, struct base_error *error)
{
    if (each->is_declared)
        return each->take(each->context, code, error);
    if (!offset)
        return 0;
    if (find_code(each->dex, offset, code, error) != 0)
        return -1;
    return code->end > code->start ? each->take(each->context, code, error) : 0;
}

static int read_methods(const struct each *each, struct base_cursor *cursor, uint64_t count, uint32_t *number,
                        struct base_error *error)
{
    const struct dex *dex = each->dex;
    uint64_t method = 0;
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        uint64_t step = base_read_uleb(cursor);
        uint64_t flags = base_read_uleb(cursor);
        uint64_t offset = base_read_uleb(cursor);
        if (cursor->failed)
            break;
        if (step >= dex->methods.count || (method += step) >= dex->methods.count)
            return base_fail(error, BASE_ERR_MALFORMED, section, dex->data_offset + base_cursor_offset(cursor),
                             "class data: method %ju of %u", (uintmax_t)(method + step), dex->methods.count);
        struct dex_code code = {.method = (uint32_t)method,
                                .class_index = each->class_index,
                                .flags = (uint32_t)flags,
                                .number = (*number)++};
        if (take_method(each, &code, offset, error) != 0)
            return -1;
    }
    return 0;
}

static int read_class(const struct each *each, uint64_t at, uint64_t *budget_bytes, struct base_error *error)
{
    const struct dex *dex = each->dex;
    uint32_t number = 0;
    struct base_cursor cursor = base_cursor(dex->data);
    base_cursor_seek(&cursor, at);
    uint64_t fields = base_read_uleb(&cursor), instance_fields = base_read_uleb(&cursor);
    uint64_t direct = base_read_uleb(&cursor), virtual = base_read_uleb(&cursor);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t i = 0; i < (kind ? instance_fields : fields) && !cursor.failed; i++) {
            base_read_uleb(&cursor); // step of the index
            base_read_uleb(&cursor); // access flags
        }
    if (read_methods(each, &cursor, direct, &number, error) != 0 ||
        read_methods(each, &cursor, virtual, &number, error) != 0)
        return -1;
    if (cursor.failed)
        return base_fail(error, BASE_ERR_TRUNCATED, section, dex->data_offset + at, "class data");
    uint64_t used = base_cursor_offset(&cursor) - at;
    if (used > *budget_bytes)
        return base_fail(error, BASE_ERR_LIMIT, section, dex->data_offset + at,
                         "class data is used by several classes");
    *budget_bytes -= used;
    return 0;
}

static int read_classes(struct each *each, uint64_t *budget_bytes, struct base_error *error)
{
    const struct dex *dex = each->dex;
    struct base_cursor classes = base_cursor(dex->ids);
    base_cursor_seek(&classes, dex->classes.offset);
    uint64_t table_bytes = (uint64_t)dex->classes.count * CLASS_DEF_BYTES;
    if (table_bytes > *budget_bytes)
        return base_fail(error, BASE_ERR_LIMIT, section, dex->header_offset, "classes are used by several dex files");
    *budget_bytes -= table_bytes;
    for (uint32_t i = 0; i < dex->classes.count; i++) {
        base_cursor_skip(&classes, CLASS_DATA_OFFSET);
        uint32_t at = base_read_u32(&classes);
        base_cursor_skip(&classes, CLASS_DEF_BYTES - CLASS_DATA_OFFSET - 4);
        each->class_index = i;
        if (at && read_class(each, at, budget_bytes, error) != 0)
            return -1;
    }
    return 0;
}

int dex_each_method(const struct dex *dex, uint64_t *budget_bytes, dex_take_fn take, void *context,
                    struct base_error *error)
{
    struct each each = {.dex = dex, .take = take, .context = context};
    return read_classes(&each, budget_bytes, error);
}

int dex_each_declared(const struct dex *dex, uint64_t *budget_bytes, dex_take_fn take, void *context,
                      struct base_error *error)
{
    struct each each = {.dex = dex, .is_declared = true, .take = take, .context = context};
    return read_classes(&each, budget_bytes, error);
}

// Modified UTF-8: as UTF-8 but for NUL and what lies beyond 16 bits. Ends at its NUL.
static bool read_string(const struct dex *dex, uint32_t index, const char **text, size_t *length)
{
    if (index >= dex->strings.count)
        return false;
    struct base_cursor ids = base_cursor(dex->ids), data = base_cursor(dex->data);
    base_cursor_seek(&ids, (uint64_t)dex->strings.offset + (uint64_t)index * STRING_ID_BYTES);
    base_cursor_seek(&data, base_read_u32(&ids));
    base_read_uleb(&data); // its length in UTF-16
    if (data.failed)
        return false;
    size_t most = base_cursor_left(&data);
    *text = (const char *)data.at;
    *length = strnlen(*text, most < NAME_BYTES_MAX ? most : NAME_BYTES_MAX);
    return *length > 0 && *length < most && *length < NAME_BYTES_MAX;
}

char *dex_method_name(const struct dex *dex, uint32_t method)
{
    const char *descriptor, *name;
    size_t descriptor_length, name_length;
    if (method >= dex->methods.count)
        return NULL;
    struct base_cursor ids = base_cursor(dex->ids);
    base_cursor_seek(&ids, (uint64_t)dex->methods.offset + (uint64_t)method * METHOD_ID_BYTES);
    uint32_t type = base_read_u16(&ids);
    base_cursor_skip(&ids, 2); // prototype
    uint32_t name_index = base_read_u32(&ids);
    if (ids.failed || type >= dex->types.count)
        return NULL;
    base_cursor_seek(&ids, (uint64_t)dex->types.offset + (uint64_t)type * TYPE_ID_BYTES);
    if (!read_string(dex, base_read_u32(&ids), &descriptor, &descriptor_length) ||
        !read_string(dex, name_index, &name, &name_length))
        return NULL;
    // "Ljava/util/Arrays;"
    if (descriptor_length < 3 || descriptor[0] != 'L' || descriptor[descriptor_length - 1] != ';')
        return NULL;
    size_t class_length = descriptor_length - 2;
    char *text = malloc(class_length + 1 + name_length + 1);
    if (!text)
        return NULL;
    for (size_t i = 0; i < class_length; i++)
        text[i] = descriptor[1 + i] == '/' ? '.' : descriptor[1 + i];
    text[class_length] = '.';
    memcpy(text + class_length + 1, name, name_length);
    text[class_length + 1 + name_length] = '\0';
    return text;
}
