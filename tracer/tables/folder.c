// SPDX-License-Identifier: Apache-2.0
// The tables as Parquet files, in the layout of Hive: what folders are called is a column, and queries that ask for
// some of it open no other files.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/parquet/parquet.h"
#include "tracer/tables/inside.h"

enum { COLUMNS_MAX = 32 };

struct source {
    const struct tables *tables;
    enum tables_table table;
    unsigned columns[COLUMNS_MAX]; // those that are in the file
};

static void put_numbers(void *context, size_t column, uint64_t first, size_t count, int64_t *to)
{
    const struct source *source = context;
    tables_numbers(source->tables, source->table, source->columns[column], first, count, to);
}

static void put_texts(void *context, size_t column, uint64_t first, size_t count, struct parquet_text *to)
{
    const struct source *source = context;
    struct tables_row row = tables_row_at(source->tables, source->table, first);
    for (size_t i = 0; i < count; i++) {
        const char *text = tables_text(source->tables, &row, source->columns[column]);
        to[i] = i && to[i - 1].bytes == text ? to[i - 1] : (struct parquet_text){text, strlen(text)};
        tables_row_next(source->tables, &row);
    }
}

static int write_table(const struct tables *tables, enum tables_table table, struct sink *sink,
                       struct base_error *error)
{
    static const enum parquet_type types[] = {
        [TABLES_INT32] = PARQUET_INT32, [TABLES_INT64] = PARQUET_INT64, [TABLES_TEXT] = PARQUET_TEXT};
    const struct tables_schema *schema = &tables_schemas[table];
    struct source source = {.tables = tables, .table = table};
    struct parquet_column columns[COLUMNS_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < schema->column_count && count < COLUMNS_MAX; i++)
        if (!schema->columns[i].in_path) {
            columns[count] = (struct parquet_column){schema->columns[i].name, types[schema->columns[i].type]};
            source.columns[count++] = i;
        }
    const struct parquet_source all = {.columns = columns,
                                       .column_count = count,
                                       .row_count = tables_row_count(tables, table),
                                       .numbers = put_numbers,
                                       .texts = put_texts,
                                       .context = &source,
                                       .created_by = "qut version " QUT_VERSION};
    return parquet_write(&all, sink, error);
}

// ---- folders and files

int tables_check_folder(const char *folder, struct base_error *error)
{
    DIR *open = opendir(folder);
    if (!open)
        return errno == ENOENT ? 0 : base_fail_errno(error, errno);
    int status = 0;
    for (struct dirent *entry; status == 0 && (entry = readdir(open));) {
        bool is_ours = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        for (unsigned i = 0; i < TABLES_COUNT; i++)
            is_ours |= strcmp(entry->d_name, tables_schemas[i].name) == 0;
        if (!is_ours)
            status = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                               "holds %.60s, which is none of the tables: a new folder, please", entry->d_name);
    }
    closedir(open);
    return status;
}

int tables_check_written(const char *folder, struct base_error *error)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return base_fail_errno(error, errno);
    int status = 0;
    for (unsigned i = 0; i < TABLES_COUNT && status == 0; i++) {
        struct stat told;
        if (fstatat(fd, tables_schemas[i].name, &told, 0) != 0 || !S_ISDIR(told.st_mode))
            status = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                               "has no folder %s: it is none that qut export -f parquet has written",
                               tables_schemas[i].name);
    }
    close(fd);
    return status;
}

// What folders' names may have as it is; the rest as %20.
static void put_escaped(char *to, size_t room, const char *text)
{
    size_t length = strlen(to);
    for (; *text && length + 4 < room; text++) {
        if (isalnum((unsigned char)*text) || strchr("._-+", *text))
            to[length++] = *text;
        else
            length += (size_t)snprintf(to + length, 4, "%%%02X", (unsigned)(unsigned char)*text);
    }
    to[length] = 0;
}

// A name is on the disk when its folder is.
static int sync_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int status = fd >= 0 ? fsync(fd) : -1;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return status;
}

static int write_file(const struct tables *tables, enum tables_table table, const char *path, struct base_error *error)
{
    struct sink *sink = sink_file(path, error);
    if (!sink)
        return -1;
    sink_sync(sink);
    const int status = write_table(tables, table, sink, error);
    struct base_error closing = {0};
    if (sink_close(sink, status == 0, &closing) == 0 || status != 0)
        return status;
    *error = closing;
    return -1;
}

static int write_into(const struct tables *tables, enum tables_table table, const char *folder, char *at,
                      struct base_error *error)
{
    char service[256] = "";
    put_escaped(service, sizeof service, tables->service);
    const char *name = tables_schemas[table].name;
    size_t lengths[4]; // of the paths of the folders, from the outermost on
    const int length = snprintf(at, PATH_MAX, "%s/%s/date=%s/service=%s/%016" PRIx64 ".parquet", folder, name,
                                tables->date, service, (uint64_t)tables->id);
    if (length >= PATH_MAX)
        return base_fail_errno(error, ENAMETOOLONG);
    lengths[0] = strlen(folder);
    lengths[1] = lengths[0] + 1 + strlen(name);
    lengths[2] = lengths[1] + strlen("/date=") + strlen(tables->date);
    lengths[3] = lengths[2] + strlen("/service=") + strlen(service);
    bool is_new[4];
    for (unsigned i = 0; i < 4; i++) {
        at[lengths[i]] = 0;
        is_new[i] = mkdir(at, 0777) == 0;
        if (!is_new[i] && errno != EEXIST)
            return base_fail_errno(error, errno);
        at[lengths[i]] = '/';
    }
    if (write_file(tables, table, at, error) != 0)
        return -1;
    // A folder that was there is on the disk already.
    for (unsigned i = 4; i-- > 0;) {
        at[lengths[i]] = 0;
        if ((i == 3 || is_new[i + 1]) && sync_folder(at) != 0)
            return base_fail_errno(error, errno);
    }
    return 0;
}

int tables_write_folder(const struct tables *tables, const char *folder, char *at, struct base_error *error)
{
    static const enum tables_table order[] = {TABLES_FRAMES, TABLES_STACKS, TABLES_SAMPLES, TABLES_TRACES};
    snprintf(at, PATH_MAX, "%s", folder);
    if (tables_check_folder(folder, error) != 0)
        return -1;
    for (unsigned i = 0; i < TABLES_COUNT; i++)
        if (write_into(tables, order[i], folder, at, error) != 0)
            return -1;
    return 0;
}
