// SPDX-License-Identifier: Apache-2.0
// Tables into the folder. A worker that is killed leaves nothing, or a line without its table, or both for the next
// run.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/codec.h"
#include "qutc/cache.h"
#include "qutc/qutc.h"
#include "qutc/shelf/inside.h"

enum { PACK_LEVEL = 3 }; // 9 takes four times as long for a tenth less

char *shelf_join(const char *folder, const char *name, const char *suffix, struct base_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, name, suffix) >= 0)
        return path;
    base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    return NULL;
}

int shelf_publish(const char *folder, const char *name, const char *suffix, const void *bytes, size_t size, bool synced,
                  struct base_error *error)
{
    char *path = shelf_join(folder, name, suffix, error);
    int result = path ? qutc_publish(path, bytes, size, synced, error) : -1;
    free(path);
    return result;
}

int shelf_lock(const char *root, int operation, struct base_error *error)
{
    char *folder = shelf_join(root, "qut/v1", "", error), *path = folder ? shelf_join(folder, "lock", "", error) : NULL;
    int lock = -1;
    if (path && qutc_make_directories(folder, error) == 0) {
        lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (lock < 0 || flock(lock, operation) != 0) {
            base_fail_errno(error, errno);
            if (lock >= 0)
                close(lock);
            lock = -1;
        }
    }
    free(path);
    free(folder);
    return lock;
}

static int pack(struct base_bytes table, uint8_t **packed, size_t *packed_bytes, struct base_error *error)
{
    size_t room = base_zstd_bound(table.size);
    *packed = malloc(room);
    if (!*packed)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "packed table");
    return base_zstd_pack(table, PACK_LEVEL, *packed, room, packed_bytes, error);
}

bool shelf_has(const char *root, const struct input_image *image)
{
    char shard[SHELF_PATH_MAX], rest[2 * QUT_IDENTITY_MAX + 1], name[SHELF_PATH_MAX], *path = NULL;
    shelf_shard(image->arch, image->identity, shard);
    qut_hex(image->identity + 1, image->identity_size - 1u, rest);
    shelf_file_name(rest, name);
    bool has = asprintf(&path, "%s/%s/%s", root, shard, name) >= 0 && access(path, F_OK) == 0;
    free(path);
    return has;
}

int shelf_put(const char *root, const struct input_image *image, struct base_bytes table, size_t *packed_bytes,
              struct base_error *error)
{
    struct base_bytes elf = input_image_elf(image);
    struct shelf_entry entry = {.table_bytes = table.size, .source_bytes = elf.size};
    char shard[SHELF_PATH_MAX], name[SHELF_PATH_MAX], line[SHELF_LINE_MAX];
    uint8_t *packed = NULL;
    size_t size = 0;
    if (image->identity_size < 2)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "an identity of one byte names no file");
    shelf_shard(image->arch, image->identity, shard);
    qut_hex(image->identity + 1, image->identity_size - 1u, entry.rest);
    shelf_file_name(entry.rest, name);
    char *folder = shelf_join(root, shard, "", error);
    int result = folder ? qutc_make_directories(folder, error) : -1;
    if (result == 0)
        result = pack(table, &packed, &size, error);
    entry.packed_bytes = size;
    if (result == 0)
        result = shelf_hash((struct base_bytes){packed, size}, entry.packed_hash, error);
    if (result == 0)
        result = shelf_hash(elf, entry.source_hash, error);
    shelf_entry_print(&entry, line);
    strcat(line, "\n");
    // No index is written between the two.
    int lock = result == 0 ? shelf_lock(root, LOCK_SH, error) : -1;
    if (lock < 0)
        result = -1;
    // The line first: a table without one would never be named. Both reach the disk before an index names them: all at
    // once, since waiting for it with each takes a minute for 1,500 tables.
    if (result == 0)
        result = shelf_publish(folder, name, SHELF_LINE_SUFFIX, line, strlen(line), false, error);
    if (result == 0)
        result = shelf_publish(folder, name, "", packed, size, false, error);
    if (lock >= 0)
        close(lock);
    if (packed_bytes)
        *packed_bytes = size;
    free(packed);
    free(folder);
    return result;
}
