// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/index.h"

#include <stdlib.h>

#include "tracer/symbols/sort.h"

struct entry {
    uint64_t start, end;
    uint64_t end_before; // the greatest end of those that start earlier
    uint32_t dex;
    uint32_t method;
};

struct qut_dex_index {
    struct qut_dex *files;
    struct entry *entries; // by start, then in the files' order
    size_t count, capacity;
};

struct adding {
    struct qut_dex_index *index;
    uint32_t dex;
};

static int add(void *context, const struct qut_dex_code *code, struct qutc_error *error)
{
    const struct adding *adding = context;
    struct qut_dex_index *index = adding->index;
    if (index->count == index->capacity) {
        size_t capacity = index->capacity ? 2 * index->capacity : 1024;
        struct entry *entries = realloc(index->entries, capacity * sizeof *entries);
        if (!entries)
            return qutc_fail(error, QUTC_ERR_NO_MEMORY, "dex", code->start, "%zu methods", capacity);
        index->entries = entries;
        index->capacity = capacity;
    }
    index->entries[index->count++] =
        (struct entry){.start = code->start, .end = code->end, .dex = adding->dex, .method = code->method};
    return 0;
}

static void note_ends(struct qut_dex_index *index)
{
    uint64_t before = 0, greatest = 0;
    for (size_t i = 0; i < index->count; i++) {
        struct entry *entry = &index->entries[i];
        if (i > 0 && entry->start != entry[-1].start)
            before = greatest;
        entry->end_before = before;
        greatest = entry->end > greatest ? entry->end : greatest;
    }
}

static int fill(struct qut_dex_index *index, struct qutc_bytes file, const struct qut_dex_list *list,
                struct qutc_error *error)
{
    uint64_t budget_bytes = file.size;
    for (size_t i = 0; i < list->count; i++) {
        struct adding adding = {index, (uint32_t)i};
        if (qut_dex_read(file, list->offsets[i], &index->files[i], error) != 0 ||
            qut_dex_each_method(&index->files[i], &budget_bytes, add, &adding, error) != 0)
            return -1;
    }
    if (qut_sort_by_first_u64(index->entries, index->count, sizeof *index->entries) != 0)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "dex", 0, "%zu methods", index->count);
    note_ends(index);
    return 0;
}

struct qut_dex_index *qut_dex_index_make(struct qutc_bytes file, const struct qut_dex_list *list,
                                         struct qutc_error *error)
{
    struct qut_dex_index *index = calloc(1, sizeof *index);
    if (index)
        index->files = calloc(list->count + 1, sizeof *index->files);
    if (!index || !index->files) {
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "dex", 0, "%zu dex files", list->count);
    } else if (fill(index, file, list, error) == 0) {
        return index;
    }
    qut_dex_index_free(index);
    return NULL;
}

void qut_dex_index_free(struct qut_dex_index *index)
{
    if (!index)
        return;
    free(index->files);
    free(index->entries);
    free(index);
}

size_t qut_dex_index_count(const struct qut_dex_index *index)
{
    return index->count;
}

// The first entry that starts behind an offset.
static size_t behind(const struct qut_dex_index *index, uint64_t offset)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool qut_dex_index_find(const struct qut_dex_index *index, uint64_t offset, struct qut_dex_found *found)
{
    size_t next = behind(index, offset);
    if (next == 0)
        return false;
    uint64_t start = index->entries[next - 1].start;
    size_t first = start ? behind(index, start - 1) : 0;
    const struct entry *entry = &index->entries[first];
    // Code that reaches in here from before makes two methods of one place.
    if (offset >= entry->end || entry->end_before > offset)
        return false;
    *found = (struct qut_dex_found){.dex = &index->files[entry->dex],
                                    .code = {.start = entry->start, .end = entry->end, .method = entry->method},
                                    .is_shared = next - first > 1};
    return true;
}

char *qut_dex_found_name(const struct qut_dex_found *found)
{
    static const char mark[] = " [DEDUPED]";
    char *name = qut_dex_method_name(found->dex, found->code.method);
    if (!name || !found->is_shared)
        return name;
    size_t length = strlen(name);
    char *longer = realloc(name, length + sizeof mark);
    if (!longer) {
        free(name);
        return NULL;
    }
    memcpy(longer + length, mark, sizeof mark);
    return longer;
}
