// SPDX-License-Identifier: Apache-2.0
// ELF files inside a zip archive. Only stored (uncompressed) ones count: those are what Android's linker maps straight
// out of an APK. A compressed library is extracted at installation, and is found there; here it is only counted.
#include <elf.h>
#include <stdlib.h>

#include "qutc/input/inputs_list.h"
#include "qutc/input/zip.h"

enum { IMAGES_MAX = 4096 }; // per archive

// Where a stored entry's data is, if it begins as an ELF file does.
static bool find_elf(struct base_bytes file, const struct input_zip_entry *entry, uint64_t *offset)
{
    return input_zip_is_stored(entry) && entry->size_bytes >= EI_NIDENT && input_zip_find_data(file, entry, offset) &&
           memcmp(file.data + *offset, ELFMAG, SELFMAG) == 0;
}

static bool is_compressed_library(const struct input_zip_entry *entry)
{
    return entry->method != 0 && entry->name.size > 3 && memcmp(entry->name.data + entry->name.size - 3, ".so", 3) == 0;
}

static int add_member(struct input_inputs *inputs, const struct input_file *file, const struct input_zip_entry *entry,
                      uint64_t offset, struct base_error *error)
{
    char *member = strndup((const char *)entry->name.data, entry->name.size);
    if (!member)
        return base_fail(error, BASE_ERR_NO_MEMORY, input_zip_directory_name, 0, "a name");
    int result = input_inputs_add_file(inputs, file, member, offset, entry->size_bytes, error);
    free(member);
    return result;
}

static int add_members(struct input_inputs *inputs, const struct input_file *file, struct base_bytes bytes,
                       int64_t only_offset, size_t *found, struct base_error *error)
{
    struct input_zip zip;
    struct input_zip_entry entry = {0};
    uint64_t offset = 0;
    int next;
    if (input_zip_open(&zip, bytes, error))
        return -1;
    while ((next = input_zip_next(&zip, &entry, error)) > 0) {
        if (is_compressed_library(&entry) && only_offset == INPUT_ARCHIVE_ALL)
            inputs->skipped_compressed++;
        if (!find_elf(bytes, &entry, &offset))
            continue;
        if (only_offset != INPUT_ARCHIVE_ALL &&
            ((uint64_t)only_offset < offset || (uint64_t)only_offset - offset >= entry.size_bytes))
            continue;
        if ((*found)++ == IMAGES_MAX)
            return base_fail(error, BASE_ERR_LIMIT, input_zip_directory_name, entry.local_offset,
                             "more than %d ELF files", IMAGES_MAX);
        if (add_member(inputs, file, &entry, offset, error))
            return -1;
    }
    return next;
}

int input_inputs_add_archive(struct input_inputs *inputs, const struct input_file *file, int64_t only_offset,
                             size_t *found, struct base_error *error)
{
    struct input_file_map map;
    *found = 0;
    int result = input_file_map_open(&map, file->path, 0, 0, INPUT_FILE_MAPPED, error);
    if (result == 0)
        result = add_members(inputs, file, map.bytes, only_offset, found, error);
    input_file_map_close(&map);
    return result;
}
