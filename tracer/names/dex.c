// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dex.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracer/dex/source.h"
#include "tracer/names/locate.h"

enum { SOURCES_MAX = 1024, FAILURES_MAX = 16 };

struct names_dex {
    char *path;
    struct qut_dex_source *sources; // of an archive one for each of its dex files that was asked for
    size_t count;
    unsigned failures;
};

static const struct qut_dex_source *source_at(const struct names_dex *dex, uint64_t offset)
{
    for (size_t i = dex->count; i-- > 0;)
        if (offset >= dex->sources[i].offset_bytes &&
            offset - dex->sources[i].offset_bytes < dex->sources[i].bytes.size)
            return &dex->sources[i];
    return NULL;
}

static const struct qut_dex_source *open_source(struct names_file *file, uint64_t offset)
{
    struct names_dex *dex = file->dex;
    if (dex->failures == FAILURES_MAX || dex->count == SOURCES_MAX)
        return NULL;
    struct qut_dex_source *sources = realloc(dex->sources, (dex->count + 1) * sizeof *sources);
    if (!sources)
        return NULL;
    dex->sources = sources;
    struct qutc_error error = {0};
    if (qut_dex_source_open(&sources[dex->count], dex->path, offset, &error) != 0) {
        dex->failures++;
        char text[NAMES_WHY_MAX];
        if (!*file->why)
            snprintf(file->why, sizeof file->why, "%s",
                     error.reason == QUTC_ERR_IO ? error.detail : qutc_error_text(&error, text, sizeof text));
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
        if (!file->dex || !file->dex->path)
            return NULL;
    }
    const struct qut_dex_source *source = source_at(file->dex, offset);
    if (!source)
        source = open_source(file, offset);
    struct qut_dex_found found;
    if (!source || !qut_dex_index_find(source->index, offset - source->offset_bytes, &found))
        return NULL;
    return qut_dex_found_name(&found);
}

void names_dex_free(struct names_dex *dex)
{
    if (!dex)
        return;
    for (size_t i = 0; i < dex->count; i++)
        qut_dex_source_close(&dex->sources[i]);
    free(dex->sources);
    free(dex->path);
    free(dex);
}
