// SPDX-License-Identifier: Apache-2.0
// Dex files, alone, in containers, in .vdex and in old OAT files; their methods by where the code is, and their names.
// Input: which of them; then the file.
#include "tests/fuzz/fuzz.h"
#include "tracer/dex/index.h"

enum { KINDS = 3, LOOKUPS = 64 };

static int list_files(struct qut_dex_list *list, unsigned kind, struct qutc_bytes file, struct qutc_error *error)
{
    switch (kind) {
    case 0: return qut_dex_list_at(list, file, 0, error);
    case 1: return qut_dex_list_vdex(list, file, error);
    default: return qut_dex_list_search(list, file, error);
    }
}

// Whatever is found holds the offset, and has one name at most.
static void look_up(const struct qut_dex_index *index, uint64_t offset, uint64_t file_size)
{
    struct qut_dex_found found;
    if (!qut_dex_index_find(index, offset, &found))
        return;
    fuzz_require(found.code.start <= offset && offset < found.code.end && found.code.end <= file_size);
    free(qut_dex_found_name(&found));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct qutc_bytes file = {data + 1, size - 1};
    struct qutc_error error = {0};
    struct qut_dex_list list;
    uint64_t before_bytes;
    qut_dex_extent(file, &before_bytes);
    if (list_files(&list, data[0] % KINDS, file, &error) != 0) {
        fuzz_require(error.reason != QUTC_OK);
        return 0;
    }
    for (size_t i = 1; i < list.count; i++)
        fuzz_require(list.offsets[i] > list.offsets[i - 1]);
    struct qut_dex_index *index = qut_dex_index_make(file, &list, &error);
    fuzz_require(index || error.reason != QUTC_OK);
    if (index) {
        for (uint64_t i = 0; i < LOOKUPS; i++)
            look_up(index, file.size * i / LOOKUPS, file.size);
        for (uint64_t offset = 0; offset < file.size && offset < 1024; offset++)
            look_up(index, offset, file.size);
        qut_dex_index_free(index);
    }
    qut_dex_list_free(&list);
    return 0;
}
