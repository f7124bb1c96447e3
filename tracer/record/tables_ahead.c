// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/tables_ahead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qutc/cache.h"
#include "qutc/input/inputs.h"
#include "tracer/record/file_says.h"

enum { AHEAD_MOST = 256 };

struct file {
    const struct input *input;
    uint64_t file_bytes;
    uint32_t build_id_bytes;
    uint8_t build_id[sizeof(((struct file_says *)0)->build_id)];
};
static_assert(sizeof((struct file *)0)->build_id == sizeof((struct agent_channel_table *)0)->build_id, "both hold it");

bool record_table_is_missing(const char *cache_directory, const char *arch_name, const uint8_t *build_id,
                             uint32_t build_id_bytes)
{
    char *path = NULL;
    if (!cache_directory ||
        qutc_cache_path_named(cache_directory, arch_name, build_id, build_id_bytes, &path, NULL) != 0)
        return true;
    const bool is_there = access(path, R_OK) == 0;
    free(path);
    return !is_there;
}

// False: it has no identity, or its table is there.
static bool is_missing(const char *directory, const struct input *input, struct file *file)
{
    struct file_says says;
    if (!input->path || input->memory.data || input->offset_bytes ||
        strlen(input->name) >= sizeof((struct agent_channel_table *)0)->path || !record_file_says(input->path, &says) ||
        !says.build_id_bytes)
        return false;
    *file = (struct file){.input = input, .file_bytes = says.file_bytes, .build_id_bytes = says.build_id_bytes};
    memcpy(file->build_id, says.build_id, says.build_id_bytes);
    return record_table_is_missing(directory, says.arch->name, file->build_id, file->build_id_bytes);
}

static int by_size(const void *a, const void *b)
{
    const struct file *first = a, *second = b;
    return (first->file_bytes < second->file_bytes) - (first->file_bytes > second->file_bytes);
}

size_t record_tables_ahead(uint32_t pid, const char *cache_directory, struct agent_channel_table **asked)
{
    struct input_inputs inputs;
    struct file *files = NULL;
    size_t count = 0;
    *asked = NULL;
    input_inputs_init(&inputs);
    if (input_inputs_add_process(&inputs, (int)pid, NULL) == 0)
        files = calloc(inputs.count + 1, sizeof *files);
    for (size_t i = 0; files && i < inputs.count && count < AHEAD_MOST; i++)
        count += is_missing(cache_directory, &inputs.items[i], &files[count]);
    if (count) {
        qsort(files, count, sizeof *files, by_size);
        *asked = calloc(count, sizeof **asked);
    }
    if (!*asked)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        struct agent_channel_table *table = &(*asked)[i];
        snprintf(table->path, sizeof table->path, "%s", files[i].input->name);
        table->build_id_bytes = files[i].build_id_bytes;
        memcpy(table->build_id, files[i].build_id, files[i].build_id_bytes);
    }
    free(files);
    input_inputs_free(&inputs);
    return count;
}
