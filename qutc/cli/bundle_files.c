// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/bundle_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/diagnostics.h"
#include "qutc/table_file.h"

static const uint64_t bundle_max_bytes = (uint64_t)1 << 36;

static int append(struct cli_paths *paths, char *path)
{
    char **place = path ? BASE_ADD(paths) : NULL;
    if (!place) {
        free(path);
        cli_report(stderr, NULL, "out of memory");
        return CLI_BAD;
    }
    *place = path;
    return CLI_OK;
}

static int is_table_name(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".qut") == 0 && entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_directory(struct cli_paths *paths, const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_table_name, by_name);
    if (count < 0) {
        cli_report(stderr, path, "cannot read: %s", strerror(errno));
        return CLI_BAD;
    }
    int status = CLI_OK;
    for (int i = 0; i < count; i++) {
        char *child = NULL;
        if (status == CLI_OK) {
            if (asprintf(&child, "%s/%s", path, entries[i]->d_name) < 0)
                child = NULL;
            status = append(paths, child);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

int cli_paths_add(struct cli_paths *paths, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        cli_report(stderr, path, "cannot read: %s", strerror(errno));
        return CLI_BAD;
    }
    return S_ISDIR(status.st_mode) ? add_directory(paths, path) : append(paths, strdup(path));
}

void cli_paths_free(struct cli_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    base_vector_free(&paths->vector);
    *paths = (struct cli_paths){0};
}

int cli_bundle_read(const char *path, struct cli_bundle_file *file, struct base_error *error)
{
    size_t size;
    *file = (struct cli_bundle_file){0};
    if (qutc_read_file(path, bundle_max_bytes, &file->bytes, &size, error) != 0)
        return -1;
    if (qutc_bundle_open(&file->bundle, file->bytes, size, error) == 0)
        return 0;
    free(file->bytes);
    file->bytes = NULL;
    return -1;
}
