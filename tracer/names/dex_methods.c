// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dex_methods.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracer/dex/source.h"
#include "tracer/names/locate.h"

enum { SOURCES_MAX = 1024, FAILURES_MAX = 16 };

struct names_dex {
    char *path;
    BASE_VECTOR(struct dex_source); // of an archive one for each of its dex files that was asked for
    unsigned failures;
};

static const struct dex_source *source_at(const struct names_dex *dex, uint64_t offset)
{
    for (size_t i = dex->count; i-- > 0;)
        if (offset >= dex->items[i].offset_bytes && offset - dex->items[i].offset_bytes < dex->items[i].bytes.size)
            return &dex->items[i];
    return NULL;
}

static const struct dex_source *open_source(struct names_file *file, uint64_t offset)
{
    struct names_dex *dex = file->dex;
    if (dex->failures == FAILURES_MAX || dex->count == SOURCES_MAX)
        return NULL;
    if (!BASE_RESERVE(dex, 1)) {
        file->no_memory = true;
        return NULL;
    }
    struct base_error error = {0};
    if (dex_source_open(&dex->items[dex->count], dex->path, offset, &error) != 0) {
        dex->failures++;
        file->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
        char text[NAMES_WHY_MAX];
        if (!*file->why)
            snprintf(file->why, sizeof file->why, "%s",
                     error.reason == BASE_ERR_IO ? error.detail : base_error_text(&error, text, sizeof text));
        return NULL;
    }
    dex->count++;
    return source_at(dex, offset);
}

char *names_dex_method(struct names_file *file, uint64_t offset)
{
    if (!file->dex) {
        const char *entry;
        file->dex = calloc(1, sizeof *file->dex);
        if (file->dex)
            file->dex->path = names_locate_path(file->options, file->module->path, &entry);
        if (!file->dex || !file->dex->path) {
            file->no_memory = true;
            return NULL;
        }
    }
    const struct dex_source *source = source_at(file->dex, offset);
    if (!source)
        source = open_source(file, offset);
    struct dex_found found;
    if (!source || !dex_index_find(source->index, offset - source->offset_bytes, &found))
        return NULL;
    return dex_found_name(&found);
}

void names_dex_free(struct names_dex *dex)
{
    if (!dex)
        return;
    for (size_t i = 0; i < dex->count; i++)
        dex_source_close(&dex->items[i]);
    base_vector_free(&dex->vector);
    free(dex->path);
    free(dex);
}
