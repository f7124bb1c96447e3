// SPDX-License-Identifier: Apache-2.0
// ELF files inside a zip archive. Only stored (uncompressed) ones count: those are what Android's linker maps straight
// out of an APK. A compressed library is extracted at installation, and is found there; here it is only counted.
#include <elf.h>
#include <stdlib.h>

#include "qutc/input/inputs_list.h"
#include "qutc/input/zip.h"

enum { IMAGES_MAX = 4096 }; // per archive

// Where a stored entry's data is, if it begins as an ELF file does.
static bool find_elf(struct qutc_bytes file, const struct qutc_zip_entry *entry, uint64_t *offset)
{
    return qutc_zip_is_stored(entry) && entry->size_bytes >= EI_NIDENT && qutc_zip_find_data(file, entry, offset) &&
           memcmp(file.data + *offset, ELFMAG, SELFMAG) == 0;
}

static bool is_compressed_library(const struct qutc_zip_entry *entry)
{
    return entry->method != 0 && entry->name.size > 3 && memcmp(entry->name.data + entry->name.size - 3, ".so", 3) == 0;
}

static int add_member(struct qutc_inputs *inputs, const struct qutc_input_file *file,
                      const struct qutc_zip_entry *entry, uint64_t offset, struct qutc_error *error)
{
    char *member = strndup((const char *)entry->name.data, entry->name.size);
    if (!member)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, qutc_zip_directory_name, 0, "a name");
    int result = qutc_inputs_add_file(inputs, file, member, offset, entry->size_bytes, error);
    free(member);
    return result;
}

static int add_members(struct qutc_inputs *inputs, const struct qutc_input_file *file, struct qutc_bytes bytes,
                       int64_t only_offset, size_t *found, struct qutc_error *error)
{
    struct qutc_zip zip;
    struct qutc_zip_entry entry = {0};
    uint64_t offset = 0;
    int next;
    if (qutc_zip_open(&zip, bytes, error))
        return -1;
    while ((next = qutc_zip_next(&zip, &entry, error)) > 0) {
        if (is_compressed_library(&entry) && only_offset == QUTC_ARCHIVE_ALL)
            inputs->skipped_compressed++;
        if (!find_elf(bytes, &entry, &offset))
            continue;
        if (only_offset != QUTC_ARCHIVE_ALL &&
            ((uint64_t)only_offset < offset || (uint64_t)only_offset - offset >= entry.size_bytes))
            continue;
        if ((*found)++ == IMAGES_MAX)
            return qutc_fail(error, QUTC_ERR_LIMIT, qutc_zip_directory_name, entry.local_offset,
                             "more than %d ELF files", IMAGES_MAX);
        if (add_member(inputs, file, &entry, offset, error))
            return -1;
    }
    return next;
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
