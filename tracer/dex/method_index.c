// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/method_index.h"

#include <stdlib.h>

#include "tracer/symbols/sort.h"

struct entry {
    uint64_t start, end;
    uint64_t end_before; // the greatest end of those that start earlier
    uint32_t dex;
    uint32_t method;
};

struct dex_index {
    struct dex *files;
    BASE_VECTOR(struct entry); // by start, then in the files' order
};

struct adding {
    struct dex_index *index;
    uint32_t dex;
};

static int add(void *context, const struct dex_code *code, struct base_error *error)
{
    const struct adding *adding = context;
    struct dex_index *index = adding->index;
    struct entry *entry = BASE_ADD(index);
    if (!entry)
        return base_fail(error, BASE_ERR_NO_MEMORY, "dex", code->start, "%zu methods", index->count);
    *entry = (struct entry){.start = code->start, .end = code->end, .dex = adding->dex, .method = code->method};
    return 0;
}

static void note_ends(struct dex_index *index)
{
    uint64_t before = 0, greatest = 0;
    for (size_t i = 0; i < index->count; i++) {
        struct entry *entry = &index->items[i];
        if (i > 0 && entry->start != entry[-1].start)
            before = greatest;
        entry->end_before = before;
        greatest = entry->end > greatest ? entry->end : greatest;
    }
}

static int fill(struct dex_index *index, struct base_bytes file, const struct dex_list *list, struct base_error *error)
{
    uint64_t budget_bytes = file.size;
    for (size_t i = 0; i < list->count; i++) {
        struct adding adding = {index, (uint32_t)i};
        if (dex_read(file, list->items[i], &index->files[i], error) != 0 ||
            dex_each_method(&index->files[i], &budget_bytes, add, &adding, error) != 0)
            return -1;
    }
    if (symbols_sort_by_first_u64(index->items, index->count, sizeof *index->items) != 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu methods of a dex file", index->count);
    note_ends(index);
    return 0;
}

struct dex_index *dex_index_make(struct base_bytes file, const struct dex_list *list, struct base_error *error)
{
    struct dex_index *index = calloc(1, sizeof *index);
    if (index)
        index->files = calloc(list->count + 1, sizeof *index->files);
    if (!index || !index->files) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu dex files", list->count);
    } else if (fill(index, file, list, error) == 0) {
        return index;
    }
    dex_index_free(index);
    return NULL;
}

void dex_index_free(struct dex_index *index)
{
    if (!index)
        return;
    free(index->files);
    base_vector_free(&index->vector);
    free(index);
}

size_t dex_index_count(const struct dex_index *index)
{
    return index->count;
}

// The first entry that starts behind an offset.
static size_t behind(const struct dex_index *index, uint64_t offset)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->items[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool dex_index_find(const struct dex_index *index, uint64_t offset, struct dex_found *found)
{
    size_t next = behind(index, offset);
    if (next == 0)
        return false;
    uint64_t start = index->items[next - 1].start;
    size_t first = start ? behind(index, start - 1) : 0;
    const struct entry *entry = &index->items[first];
    // Code that reaches in here from before makes two methods of one place.
    if (offset >= entry->end || entry->end_before > offset)
        return false;
    *found = (struct dex_found){.dex = &index->files[entry->dex],
                                .code = {.start = entry->start, .end = entry->end, .method = entry->method},
                                .is_shared = next - first > 1};
    return true;
}

char *dex_found_name(const struct dex_found *found)
{
    static const char mark[] = " [DEDUPED]";
    char *name = dex_method_name(found->dex, found->code.method);
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
