// SPDX-License-Identifier: Apache-2.0
// Indexes: of each folder of tables, what shelf_put left beside them, and what was known before.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vector.h"
#include "libqut/arch/arch.h"
#include "qutc/qutc.h"
#include "qutc/shelf/inside.h"
#include "qutc/table_file.h"

static const char index_name[] = "index", signature_name[] = "index.sig";
#define NEW_SUFFIX ".new" // of both, until they are on the disk

struct shard {
    char *folder;
    BASE_VECTOR(struct shelf_entry);
    BASE_VECTOR(char *) taken; // files to remove, once the index is there
};

// Those whose indexes are written anew. They wait for the disk together: hundreds take seconds one by one.
struct shards {
    BASE_VECTOR(struct shard);
};

static void free_shard(struct shard *shard)
{
    free(shard->folder);
    for (size_t i = 0; i < shard->taken.count; i++)
        free(shard->taken.items[i]);
    base_vector_free(&shard->taken.vector);
    base_vector_free(&shard->vector);
}

static int by_rest(const void *a, const void *b)
{
    return strcmp(((const struct shelf_entry *)a)->rest, ((const struct shelf_entry *)b)->rest);
}

static int add_entry(struct shard *shard, const struct shelf_entry *entry, struct base_error *error)
{
    for (size_t i = 0; i < shard->count; i++) {
        if (strcmp(shard->items[i].rest, entry->rest) == 0) {
            shard->items[i] = *entry;
            return 0;
        }
    }
    struct shelf_entry *place = BASE_ADD(shard);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    *place = *entry;
    return 0;
}

static int add_index(struct shard *shard, const char *folder, const char *shard_path, struct base_error *error)
{
    char *path = shelf_join(folder, index_name, "", error);
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct base_cursor lines = {0};
    int result = path ? 0 : -1;
    bool is_there = path && access(path, F_OK) == 0;
    if (is_there)
        result = qutc_read_file(path, SHELF_INDEX_MAX_BYTES, &bytes, &size, error);
    if (is_there && result == 0)
        result = shelf_index_begin((struct base_bytes){bytes, size}, shard_path, &lines, error);
    while (result == 0 && base_cursor_left(&lines) > 0) {
        struct shelf_entry entry;
        result = shelf_entry_read(&lines, &entry, error);
        if (result == 0)
            result = add_entry(shard, &entry, error);
    }
    free(path);
    free(bytes);
    return result;
}

// Whether the table that a line is beside has as many bytes as it says.
static bool is_whole(const char *table_path, const struct shelf_entry *entry)
{
    struct stat status;
    return stat(table_path, &status) == 0 && (uint64_t)status.st_size == entry->packed_bytes;
}

// A line or a table that is not whole is one that the system did not bring to the disk before it ended: both go, and
// the table is made again by whoever wants it next.
static int add_line(struct shard *shard, char *path, struct base_error *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct shelf_entry entry;
    struct base_error why = {0};
    char **place = BASE_ADD(&shard->taken), *table = strndup(path, strlen(path) - strlen(SHELF_LINE_SUFFIX));
    if (place)
        *place = path;
    else
        free(path);
    int result = place && table ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    bool is_read = result == 0 && qutc_read_file(path, SHELF_LINE_MAX, &bytes, &size, &why) == 0;
    struct base_cursor line = base_cursor((struct base_bytes){bytes, size});
    if (why.reason == BASE_ERR_NO_MEMORY)
        result = base_fail_as(error, &why);
    else if (is_read && shelf_entry_read(&line, &entry, NULL) == 0 && is_whole(table, &entry))
        result = add_entry(shard, &entry, error);
    else if (result == 0)
        unlink(table);
    free(table);
    free(bytes);
    return result;
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static int write_index(const struct shard *shard, const char *shard_path, const char *key, struct base_error *error)
{
    char head[SHELF_PATH_MAX], line[SHELF_LINE_MAX], *text = NULL;
    size_t size = 0;
    uint8_t signature[SHELF_SIGNATURE_BYTES];
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    shelf_index_head(shard_path, head);
    fputs(head, stream);
    for (size_t i = 0; i < shard->count; i++) {
        shelf_entry_print(&shard->items[i], line);
        fprintf(stream, "%s\n", line);
    }
    int result = fclose(stream) == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    if (result == 0 && key)
        result = shelf_sign(key, (struct base_bytes){(const uint8_t *)text, size}, signature, error);
    if (result == 0)
        result = shelf_publish(shard->folder, index_name, NEW_SUFFIX, text, size, false, error);
    if (result == 0 && key)
        result = shelf_publish(shard->folder, signature_name, NEW_SUFFIX, signature, sizeof signature, false, error);
    free(text);
    return result;
}

static int index_folder(struct shards *shards, const char *folder, const char *shard_path, const char *key,
                        struct base_error *error)
{
    struct shard shard = {.folder = strdup(folder)};
    DIR *directory = opendir(folder);
    int result = !shard.folder ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index")
                 : directory   ? 0
                               : base_fail_errno(error, errno);
    for (struct dirent *found; result == 0 && (found = readdir(directory));) {
        if (!ends_in(found->d_name, SHELF_LINE_SUFFIX))
            continue;
        if (shard.taken.count == 0)
            result = add_index(&shard, folder, shard_path, error);
        char *path = result == 0 ? shelf_join(folder, found->d_name, "", error) : NULL;
        result = path ? add_line(&shard, path, error) : -1;
    }
    if (directory)
        closedir(directory);
    struct shard *place = result == 0 && shard.taken.count ? BASE_ADD(shards) : NULL;
    if (place) {
        if (shard.count)
            qsort(shard.items, shard.count, sizeof *shard.items, by_rest);
        *place = shard;
        return write_index(place, shard_path, key, error);
    }
    if (result == 0 && shard.taken.count)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    free_shard(&shard);
    return result;
}

static int index_architecture(struct shards *shards, const char *root, const char *arch_name, const char *key,
                              struct base_error *error)
{
    int result = 0;
    for (unsigned first = 0; first < 256 && result == 0; first++) {
        char shard[SHELF_PATH_MAX];
        snprintf(shard, sizeof shard, "qut/v1/%s/%02x", arch_name, first);
        char *folder = shelf_join(root, shard, "", error);
        if (!folder)
            return -1;
        if (access(folder, F_OK) == 0)
            result = index_folder(shards, folder, shard, key, error);
        free(folder);
    }
    return result;
}

// `name` with its suffix becomes `name`; where it is not `wanted`, neither of them stays.
static int put_in_place(const char *folder, const char *name, bool is_wanted, struct base_error *error)
{
    char *path = shelf_join(folder, name, "", error),
         *new_path = path ? shelf_join(folder, name, NEW_SUFFIX, error) : NULL;
    int result = new_path ? 0 : -1;
    if (result == 0 && is_wanted && rename(new_path, path) != 0)
        result = base_fail_errno(error, errno);
    else if (result == 0 && !is_wanted && unlink(path) != 0 && errno != ENOENT)
        result = base_fail_errno(error, errno);
    free(new_path);
    free(path);
    return result;
}

static int finish_shard(const struct shard *shard, bool is_signed, struct shelf_totals *totals,
                        struct base_error *error)
{
    // Between the two a reader finds a signature that does not fit, and asks again later: never one that seems to.
    if (put_in_place(shard->folder, index_name, true, error) != 0 ||
        put_in_place(shard->folder, signature_name, is_signed, error) != 0)
        return -1;
    totals->indexes++;
    totals->tables += shard->count;
    for (size_t i = 0; i < shard->taken.count; i++)
        if (unlink(shard->taken.items[i]) != 0)
            return base_fail_errno(error, errno);
    return 0;
}

// What was not finished: the lines are there for the next run.
static void forget(const struct shard *shard)
{
    static const char *const names[] = {index_name, signature_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = shelf_join(shard->folder, names[i], NEW_SUFFIX, NULL);
        if (path)
            unlink(path);
        free(path);
    }
}

int shelf_index(const char *root, const char *key, struct shelf_totals *totals, struct base_error *error)
{
    struct shards shards = {0};
    *totals = (struct shelf_totals){0};
    int lock = shelf_lock(root, LOCK_EX, error);
    int result = lock >= 0 ? 0 : -1;
    for (unsigned id = 0; result == 0 && id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_by_id((enum qut_arch_id)id);
        if (arch)
            result = index_architecture(&shards, root, arch->name, key, error);
    }
    // The tables, and the indexes, before these are there by name.
    if (result == 0 && shards.count && syncfs(lock) != 0)
        result = base_fail_errno(error, errno);
    for (size_t i = 0; i < shards.count; i++) {
        if (result == 0)
            result = finish_shard(&shards.items[i], key != NULL, totals, error);
        if (result != 0)
            forget(&shards.items[i]);
        free_shard(&shards.items[i]);
    }
    base_vector_free(&shards.vector);
    if (lock >= 0)
        close(lock);
    return result;
}
