// SPDX-License-Identifier: Apache-2.0
// Dex files, alone, in containers, in .vdex and in old OAT files, and whichever of them a path leads to, archives too;
// their methods by where the code is, and their names. Input: which of them; then the file.
#include "tests/proof/fuzz/fuzz.h"
#include "tracer/dex/source.h"

enum { KINDS = 3, BY_PATH = 3, LOOKUPS = 64 };

static int list_files(struct dex_list *list, unsigned kind, struct base_bytes file, struct base_error *error)
{
    switch (kind) {
    case 0: return dex_list_at(list, file, 0, error);
    case 1: return dex_list_vdex(list, file, error);
    default: return dex_list_search(list, file, error);
    }
}

// Whatever is found holds the offset, and has one name at most.
static void look_up(const struct dex_index *index, uint64_t offset, uint64_t file_size)
{
    struct dex_found found;
    if (!dex_index_find(index, offset, &found))
        return;
    fuzz_require(found.code.start <= offset && offset < found.code.end && found.code.end <= file_size);
    free(dex_found_name(&found));
}

// The places of some of the bytes lead to an archive's entries.
static void read_by_path(struct base_bytes file)
{
    const char *path = fuzz_file(file.data, file.size);
    for (uint64_t i = 0; i < 8; i++) {
        struct dex_source source;
        struct base_error error = {0};
        if (dex_source_open(&source, path, file.size * i / 8, &error) != 0) {
            fuzz_require(error.reason != BASE_OK);
            continue;
        }
        fuzz_require(source.offset_bytes + source.bytes.size <= file.size);
        for (uint64_t at = 0; at < LOOKUPS; at++)
            look_up(source.index, source.bytes.size * at / LOOKUPS, source.bytes.size);
        dex_source_close(&source);
    }
    uint8_t *copy = malloc(file.size + 1);
    struct dex_source source;
    fuzz_require(copy != NULL);
    memcpy(copy, file.data, file.size);
    if (dex_source_open_memory(&source, copy, file.size, NULL) == 0)
        dex_source_close(&source);
}

int fuzz_dex(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct base_bytes file = {data + 1, size - 1};
    struct base_error error = {0};
    struct dex_list list;
    if (data[0] % (KINDS + 1) == BY_PATH) {
        read_by_path(file);
        return 0;
    }
    uint64_t before_bytes;
    dex_extent(file, &before_bytes);
    if (list_files(&list, data[0] % (KINDS + 1), file, &error) != 0) {
        fuzz_require(error.reason != BASE_OK);
        return 0;
    }
    for (size_t i = 1; i < list.count; i++)
        fuzz_require(list.items[i] > list.items[i - 1]);
    struct dex_index *index = dex_index_make(file, &list, &error);
    fuzz_require(index || error.reason != BASE_OK);
    if (index) {
        for (uint64_t i = 0; i < LOOKUPS; i++)
            look_up(index, file.size * i / LOOKUPS, file.size);
        for (uint64_t offset = 0; offset < file.size && offset < 1024; offset++)
            look_up(index, offset, file.size);
        dex_index_free(index);
    }
    dex_list_free(&list);
    return 0;
}
