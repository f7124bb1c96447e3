// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/source.h"

#include <stdlib.h>

#include "qutc/input/zip.h"

static bool begins(struct base_bytes bytes, const char *magic)
{
    return bytes.size >= 4 && memcmp(bytes.data, magic, 4) == 0;
}

static int make_index(struct dex_source *source, struct base_error *error)
{
    struct base_bytes bytes = source->bytes;
    struct dex_list list;
    int result = begins(bytes, "vdex")      ? dex_list_vdex(&list, bytes, error)
                 : begins(bytes, "\177ELF") ? dex_list_search(&list, bytes, error)
                                            : dex_list_at(&list, bytes, 0, error);
    if (result != 0)
        return -1;
    source->index = dex_index_make(bytes, &list, error);
    dex_list_free(&list);
    return source->index ? 0 : -1;
}

static int need(struct input_file_map *map, uint64_t from, uint64_t size, struct base_error *error)
{
    if (size > DEX_SOURCE_BYTES_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "dex", from, "0x%jx bytes", (uintmax_t)size);
    // What lies behind the end is not asked for: parsers see the end themselves.
    if (!input_file_map_need(map, from, size))
        return base_fail(error, BASE_ERR_IO, "dex", from, "cannot be read");
    return 0;
}

// An entry by its name, or else by an offset in it.
struct wanted_entry {
    const char *name;
    uint64_t offset;
};

// False also for entries that are no dex files by their names.
static bool holds(struct input_file_map *map, const struct input_zip_entry *entry, const struct wanted_entry *wanted,
                  uint64_t *offset)
{
    if (wanted->name)
        return input_zip_is_stored(entry) && entry->name.size == strlen(wanted->name) &&
               memcmp(entry->name.data, wanted->name, entry->name.size) == 0 &&
               need(map, entry->local_offset, INPUT_ZIP_LOCAL_BYTES_MAX, NULL) == 0 &&
               input_zip_find_data(map->bytes, entry, offset);
    return input_zip_is_stored(entry) && entry->name.size > 4 &&
           memcmp(entry->name.data + entry->name.size - 4, ".dex", 4) == 0 && entry->local_offset < wanted->offset &&
           wanted->offset - entry->local_offset < entry->size_bytes + INPUT_ZIP_LOCAL_BYTES_MAX &&
           need(map, entry->local_offset, INPUT_ZIP_LOCAL_BYTES_MAX, NULL) == 0 &&
           input_zip_find_data(map->bytes, entry, offset) && wanted->offset >= *offset &&
           wanted->offset - *offset < entry->size_bytes;
}

static int find_entry(struct dex_source *source, const struct wanted_entry *wanted, struct base_error *error)
{
    struct base_bytes file = source->map.bytes;
    uint64_t tail = file.size < INPUT_ZIP_TAIL_BYTES_MAX ? file.size : INPUT_ZIP_TAIL_BYTES_MAX;
    struct input_zip zip;
    struct input_zip_entry entry;
    if (need(&source->map, file.size - tail, tail, error) != 0 || input_zip_open(&zip, file, error) != 0 ||
        need(&source->map, zip.directory_offset, zip.directory_size, error) != 0)
        return -1;
    int next;
    while ((next = input_zip_next(&zip, &entry, error)) > 0) {
        uint64_t offset;
        if (!holds(&source->map, &entry, wanted, &offset))
            continue;
        source->entry = strndup((const char *)entry.name.data, entry.name.size);
        if (!source->entry)
            return base_fail(error, BASE_ERR_NO_MEMORY, input_zip_directory_name, 0, "a name");
        source->bytes = (struct base_bytes){file.data + offset, (size_t)entry.size_bytes};
        source->offset_bytes = offset;
        return need(&source->map, offset, entry.size_bytes, error);
    }
    return next < 0 ? -1
                    : base_fail(error, BASE_ERR_UNSUPPORTED, input_zip_directory_name, wanted->offset,
                                "no stored dex file %s", wanted->name ? wanted->name : "at that offset");
}

static int open_file(struct dex_source *source, const char *path, const struct wanted_entry *wanted,
                     struct base_error *error)
{
    if (input_file_map_open(&source->map, path, 0, 0, INPUT_FILE_READ, error) != 0 ||
        need(&source->map, 0, 4, error) != 0)
        return -1;
    source->bytes = source->map.bytes;
    int result = begins(source->bytes, "PK\003\004") ? find_entry(source, wanted, error)
                                                     : need(&source->map, 0, source->bytes.size, error);
    if (result != 0 || make_index(source, error) != 0)
        return -1;
    if (!input_file_map_is_whole(&source->map))
        return base_fail(error, BASE_ERR_IO, "", 0, "the dex file changed while it was read");
    return 0;
}

int dex_source_open(struct dex_source *source, const char *path, uint64_t offset, struct base_error *error)
{
    const struct wanted_entry wanted = {.offset = offset};
    *source = (struct dex_source){.map = {.fd = -1}};
    int result = open_file(source, path, &wanted, error);
    if (result != 0)
        dex_source_close(source);
    return result;
}

int dex_source_open_entry(struct dex_source *source, const char *path, const char *entry, struct base_error *error)
{
    const struct wanted_entry wanted = {.name = entry};
    *source = (struct dex_source){.map = {.fd = -1}};
    int result = open_file(source, path, &wanted, error);
    if (result == 0 && !source->entry)
        result = base_fail(error, BASE_ERR_UNSUPPORTED, "dex", 0, "no archive");
    if (result != 0)
        dex_source_close(source);
    return result;
}

int dex_source_open_memory(struct dex_source *source, uint8_t *memory, size_t size, struct base_error *error)
{
    *source = (struct dex_source){.map = {.fd = -1}, .memory = memory, .bytes = {memory, size}};
    int result = make_index(source, error);
    if (result != 0)
        dex_source_close(source);
    return result;
}

void dex_source_close(struct dex_source *source)
{
    dex_index_free(source->index);
    input_file_map_close(&source->map);
    free(source->memory);
    free(source->entry);
    *source = (struct dex_source){.map = {.fd = -1}};
}
