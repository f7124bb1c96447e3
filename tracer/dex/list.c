// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/list.h"

#include <stdlib.h>

static int add(struct dex_list *list, uint64_t offset, struct base_error *error)
{
    if (list->count == DEX_LIST_FILES_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "dex", offset, "more than %d dex files", DEX_LIST_FILES_MAX);
    uint64_t *place = BASE_ADD(list);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "dex", offset, "a list of dex files");
    *place = offset;
    return 0;
}

static int finish(struct dex_list *list, int result)
{
    if (result != 0)
        dex_list_free(list);
    return result;
}

void dex_list_free(struct dex_list *list)
{
    base_vector_free(&list->vector);
}

static uint64_t aligned(uint64_t offset)
{
    return (offset + 3) & ~(uint64_t)3;
}

static int add_container(struct dex_list *list, struct base_bytes file, uint64_t offset, struct base_error *error)
{
    struct dex dex;
    uint64_t end;
    do {
        if (dex_read(file, offset, &dex, error) != 0 || add(list, offset, error) != 0)
            return -1;
        end = dex.data_offset + dex.data.size; // of a container, for which ids and data are the same
        offset = aligned(offset + dex.size_bytes);
    } while (!dex.is_compact && end > offset && end - offset >= DEX_CONTAINER_HEADER_BYTES);
    return 0;
}

int dex_list_at(struct dex_list *list, struct base_bytes file, uint64_t offset, struct base_error *error)
{
    *list = (struct dex_list){0};
    return finish(list, add_container(list, file, offset, error));
}

struct dex_section {
    uint64_t start, size;
    uint32_t count;        // of dex files
    uint32_t prefix_bytes; // in front of each: where its quickening table is
    uint64_t checksums_at; // one for each dex file
};

// Header, checksums, dex files.
static void read_vdex_006(struct base_cursor *cursor, struct dex_section *dex)
{
    dex->count = base_read_u32(cursor);
    dex->size = base_read_u32(cursor);
    base_cursor_skip(cursor, 8); // sizes of verifier dependencies, quickening information
    dex->checksums_at = base_cursor_offset(cursor);
    base_cursor_skip(cursor, (uint64_t)dex->count * 4);
    dex->start = base_cursor_offset(cursor);
}

// Header, checksums, a second header where there are dex files, dex files.
static void read_vdex_019(struct base_cursor *cursor, bool has_class_paths, struct dex_section *dex)
{
    struct base_bytes version = base_read_bytes(cursor, 4);
    dex->count = base_read_u32(cursor);
    base_cursor_skip(cursor, 4);                       // size of verifier dependencies
    base_cursor_skip(cursor, has_class_paths ? 8 : 0); // sizes of class path checksums, class loader context
    dex->checksums_at = base_cursor_offset(cursor);
    base_cursor_skip(cursor, (uint64_t)dex->count * 4);
    if (cursor->failed || memcmp(version.data, "000", 4) == 0) {
        dex->count = 0;
        return;
    }
    dex->size = base_read_u32(cursor);
    dex->size += base_read_u32(cursor); // shared data of compact dex files follows them
    base_cursor_skip(cursor, 4);        // size of quickening information
    dex->start = base_cursor_offset(cursor);
    dex->prefix_bytes = 4;
}

// A list of sections. There is a checksum for each dex file, also for those that are not in here.
static void read_vdex_027(struct base_cursor *cursor, struct dex_section *dex)
{
    enum { SECTIONS_MAX = 64, CHECKSUMS = 0, DEX_FILES = 1 };
    uint32_t sections = base_read_u32(cursor);
    for (uint32_t i = 0; i < sections && i < SECTIONS_MAX && !cursor->failed; i++) {
        uint32_t kind = base_read_u32(cursor), offset = base_read_u32(cursor), size = base_read_u32(cursor);
        if (kind == CHECKSUMS) {
            dex->count = size / 4;
            dex->checksums_at = offset;
        }
        if (kind != DEX_FILES)
            continue;
        dex->start = offset;
        dex->size = size;
    }
    if (dex->size == 0)
        dex->count = 0;
}

static int read_vdex(struct base_bytes file, struct dex_section *dex, struct base_error *error)
{
    struct base_cursor cursor = base_cursor(file);
    struct base_bytes magic = base_read_bytes(&cursor, 4), version = base_read_bytes(&cursor, 4);
    if (cursor.failed || memcmp(magic.data, "vdex", 4) != 0)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "vdex", 0, "no vdex file");
    if (memcmp(version.data, "006", 4) == 0 || memcmp(version.data, "010", 4) == 0)
        read_vdex_006(&cursor, dex);
    else if (memcmp(version.data, "019", 4) == 0 || memcmp(version.data, "021", 4) == 0)
        read_vdex_019(&cursor, version.data[1] == '2', dex);
    else if (memcmp(version.data, "027", 4) == 0)
        read_vdex_027(&cursor, dex);
    else
        return base_fail(error, BASE_ERR_UNSUPPORTED, "vdex", 4, "version %02x%02x%02x%02x", version.data[0],
                         version.data[1], version.data[2], version.data[3]);
    if (cursor.failed)
        return base_fail(error, BASE_ERR_TRUNCATED, "vdex", file.size, "header");
    if (dex->count && (dex->start > file.size || dex->size > file.size - dex->start))
        return base_fail(error, BASE_ERR_TRUNCATED, "vdex", dex->start, "dex files, 0x%jx bytes", (uintmax_t)dex->size);
    return 0;
}

static int add_vdex(struct dex_list *list, struct base_bytes file, struct base_error *error)
{
    struct dex_section section = {0};
    struct dex dex;
    if (read_vdex(file, &section, error) != 0)
        return -1;
    uint64_t at = section.start, end = section.start + section.size;
    for (uint32_t i = 0; i < section.count; i++) {
        at = aligned(at) + section.prefix_bytes;
        if (dex_read(file, at, &dex, error) != 0 || add(list, at, error) != 0)
            return -1;
        at += dex.size_bytes;
        if (at > end)
            return base_fail(error, BASE_ERR_MALFORMED, "vdex", at, "dex file %u ends behind all of them", i);
    }
    return 0;
}

int dex_list_vdex(struct dex_list *list, struct base_bytes file, struct base_error *error)
{
    *list = (struct dex_list){0};
    return finish(list, add_vdex(list, file, error));
}

bool dex_list_vdex_checksum(struct base_bytes file, size_t index, uint32_t *checksum)
{
    struct dex_section section = {0};
    if (read_vdex(file, &section, NULL) != 0 || index >= section.count)
        return false;
    struct base_cursor cursor = base_cursor(file);
    base_cursor_seek(&cursor, section.checksums_at + index * 4);
    *checksum = base_read_u32(&cursor);
    return !cursor.failed;
}

int dex_list_search(struct dex_list *list, struct base_bytes file, struct base_error *error)
{
    *list = (struct dex_list){0};
    int result = 0;
    for (uint64_t at = 0; result == 0 && at + DEX_HEADER_BYTES <= file.size; at += 4) {
        struct dex dex;
        bool is_magic = memcmp(file.data + at, "dex\n", 4) == 0 || memcmp(file.data + at, "cdex", 4) == 0;
        if (!is_magic || dex_read(file, at, &dex, NULL) != 0)
            continue;
        result = add(list, at, error);
        at += (dex.size_bytes - 1) & ~(uint64_t)3; // the loop adds 4
    }
    return finish(list, result);
}
