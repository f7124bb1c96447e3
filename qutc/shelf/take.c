// SPDX-License-Identifier: Apache-2.0
// A table from servers: its index, who vouches for that, what it says of the file at hand, and the table's own checker.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/codec.h"
#include "libqut/arch/arch.h"
#include "qutc/cache.h"
#include "qutc/qutc.h"
#include "qutc/shelf/inside.h"
#include "qutc/table_file.h"

// An index as it came: its signature before it. Of no bytes at all: the server has none.
struct index {
    uint8_t *bytes;
    size_t size;
};

// ---- what servers said before

// "MEMORY/<hash of the URL>-x86_64-9f". An address may hold what no file's name may.
static char *memory_path(const struct shelf_source *source, const char *url, const char *shard)
{
    uint8_t hash[SHELF_HASH_BYTES];
    char hex[17], *path = NULL;
    const char *arch = shard + sizeof "qut/v1/" - 1;
    if (!source->memory || shelf_hash((struct base_bytes){(const uint8_t *)url, strlen(url)}, hash, NULL) != 0)
        return NULL;
    qut_hex(hash, (sizeof hex - 1) / 2, hex);
    if (asprintf(&path, "%s/%s-%s", source->memory, hex, arch) < 0)
        return NULL;
    char *slash = strrchr(path, '/');
    *slash = '-';
    return path;
}

static bool recall(const char *path, struct index *index)
{
    struct stat status;
    if (!path || stat(path, &status) != 0)
        return false;
    int64_t age_seconds = (int64_t)time(NULL) - status.st_mtime;
    if (age_seconds < 0 || age_seconds > SHELF_MEMORY_SECONDS)
        return false;
    if (status.st_size == 0)
        return true;
    return qutc_read_file(path, SHELF_INDEX_MAX_BYTES + SHELF_SIGNATURE_BYTES, &index->bytes, &index->size, NULL) == 0;
}

// Nothing is lost where it cannot be kept.
static void remember(const char *path, const struct index *index)
{
    if (path && qutc_cache_make_room(path, NULL) == 0)
        qutc_publish(path, index->bytes, index->size, false, NULL);
}

// ---- an index

static int get_index(const struct shelf_source *source, const char *url, const char *shard, struct index *index,
                     struct base_error *error)
{
    char path[SHELF_PATH_MAX + 16];
    uint8_t *text = NULL, *signature = NULL;
    size_t text_bytes = 0, signature_bytes = 0;
    bool is_there, is_signed = false;
    snprintf(path, sizeof path, "%s/index", shard);
    if (shelf_get(url, path, SHELF_INDEX_MAX_BYTES, source->timeout_ms, &text, &text_bytes, &is_there, error) != 0)
        return -1;
    if (!is_there)
        return 0;
    int result = 0;
    snprintf(path, sizeof path, "%s/index.sig", shard);
    if (source->key) {
        result = shelf_get(url, path, SHELF_SIGNATURE_BYTES, source->timeout_ms, &signature, &signature_bytes,
                           &is_signed, error);
        if (result == 0 && (!is_signed || signature_bytes != SHELF_SIGNATURE_BYTES))
            result = base_fail(error, BASE_ERR_MALFORMED, "", 0, "it is not signed");
    }
    index->size = SHELF_SIGNATURE_BYTES + text_bytes;
    index->bytes = result == 0 ? calloc(1, index->size) : NULL;
    if (result == 0 && !index->bytes)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "index");
    if (result == 0 && signature)
        memcpy(index->bytes, signature, SHELF_SIGNATURE_BYTES);
    if (result == 0)
        memcpy(index->bytes + SHELF_SIGNATURE_BYTES, text, text_bytes);
    free(signature);
    free(text);
    return result;
}

static int find_in(const struct shelf_source *source, const struct index *index, const char *shard, const char *rest,
                   struct shelf_entry *entry, bool *found, struct base_error *error)
{
    *found = false;
    if (index->size == 0)
        return 0;
    if (index->size < SHELF_SIGNATURE_BYTES)
        return base_fail(error, BASE_ERR_TRUNCATED, "", 0, "it is cut off");
    struct base_bytes signature = {index->bytes, SHELF_SIGNATURE_BYTES};
    struct base_bytes text = {index->bytes + SHELF_SIGNATURE_BYTES, index->size - SHELF_SIGNATURE_BYTES};
    if (source->key && shelf_verify(source->key, text, signature, error) != 0)
        return -1;
    return shelf_index_find(text, shard, rest, entry, found, error);
}

// *recalled: whether what is kept of an earlier answer may do; then whether it did.
static int find_entry(const struct shelf_source *source, const char *url, const char *shard, const char *rest,
                      struct shelf_entry *entry, bool *found, bool *recalled, struct base_error *error)
{
    struct index index = {0};
    char *path = memory_path(source, url, shard);
    int result = 0;
    bool is_recalled = *recalled && recall(path, &index);
    // What is kept may be of another key's time, or damaged: the server is asked then.
    if (is_recalled && find_in(source, &index, shard, rest, entry, found, NULL) != 0)
        is_recalled = false;
    if (!is_recalled) {
        free(index.bytes);
        index = (struct index){0};
        result = get_index(source, url, shard, &index, error);
        if (result == 0)
            result = find_in(source, &index, shard, rest, entry, found, error);
        if (result == 0)
            remember(path, &index);
    }
    *recalled = is_recalled;
    free(index.bytes);
    free(path);
    return result;
}

// ---- a table

// A build-id is a name and no proof: two builds can share one, or claim to. To hash the file takes longer than all else
// does, so it is done while the table comes.
struct source_check {
    const struct shelf_entry *entry;
    struct base_bytes elf;
    pthread_t thread;
    bool is_beside; // in a thread of its own
    int result;
    struct base_error error;
};

static void *hash_source(void *context)
{
    struct source_check *check = context;
    uint8_t hash[SHELF_HASH_BYTES];
    check->result = shelf_hash(check->elf, hash, &check->error);
    if (check->result == 0 && memcmp(hash, check->entry->source_hash, sizeof hash) != 0)
        check->result =
            base_fail(&check->error, BASE_ERR_TABLE, "", 0, "it is of another file of this identity: other bytes");
    return NULL;
}

// -1: it is another file, as its size shows.
static int begin_check(struct source_check *check, const struct shelf_entry *entry, const struct input_image *image,
                       struct base_error *error)
{
    *check = (struct source_check){.entry = entry};
    if (!image)
        return 0;
    check->elf = input_image_elf(image);
    if (entry->source_bytes != check->elf.size)
        return base_fail(error, BASE_ERR_TABLE, "index", 0,
                         "it is of another file of this identity: %llu bytes, not %zu",
                         (unsigned long long)entry->source_bytes, check->elf.size);
    check->is_beside = pthread_create(&check->thread, NULL, hash_source, check) == 0;
    if (!check->is_beside)
        hash_source(check);
    return 0;
}

// Of both results the check's comes first.
static int end_check(struct source_check *check, int result, struct base_error *error)
{
    if (check->is_beside)
        pthread_join(check->thread, NULL);
    if (check->result == 0)
        return result;
    *error = check->error;
    return -1;
}

static int unpack(struct base_bytes packed, const struct shelf_entry *entry, const struct shelf_wanted *wanted,
                  uint8_t **table, size_t *table_size, struct base_error *error)
{
    uint8_t hash[SHELF_HASH_BYTES];
    struct qut_table attached;
    if (shelf_hash(packed, hash, error) != 0)
        return -1;
    if (packed.size != entry->packed_bytes || memcmp(hash, entry->packed_hash, sizeof hash) != 0)
        return base_fail(error, BASE_ERR_TABLE, "", 0, "its bytes are not those that the index names");
    if (base_zstd_check(packed, entry->table_bytes, "table", error) != 0)
        return -1;
    *table_size = (size_t)entry->table_bytes;
    *table = qutc_alloc_aligned(*table_size);
    if (!*table)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "table");
    if (base_unzstd(packed, *table, *table_size, "table", error) != 0 ||
        qutc_table_attach(&attached, *table, *table_size, error) != 0)
        return -1;
    const struct qut_table_header *header = attached.header;
    bool is_its = header->arch == wanted->arch->id && header->identity_size == wanted->identity_size &&
                  memcmp(header->identity, wanted->identity, wanted->identity_size) == 0;
    return is_its ? 0 : base_fail(error, BASE_ERR_TABLE, "", 0, "it is of another file");
}

static int take_from(const struct shelf_source *source, const char *url, const struct shelf_wanted *wanted, bool *found,
                     bool *recalled, uint8_t **table, size_t *table_size, struct base_error *error)
{
    enum { TABLE_MAX_BYTES = 1 << 30 };
    char shard[SHELF_PATH_MAX], rest[2 * QUT_IDENTITY_MAX + 1], name[SHELF_PATH_MAX], path[2 * SHELF_PATH_MAX];
    struct shelf_entry entry;
    *found = false;
    shelf_shard(wanted->arch, wanted->identity, shard);
    qut_hex(wanted->identity + 1, wanted->identity_size - 1u, rest);
    if (find_entry(source, url, shard, rest, &entry, found, recalled, error) != 0)
        return -1;
    if (!*found)
        return 0;
    if (entry.packed_bytes > SHELF_PACKED_MAX_BYTES || entry.table_bytes > TABLE_MAX_BYTES)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "no table is that large");
    struct source_check check;
    if (begin_check(&check, &entry, wanted->image, error) != 0)
        return -1;
    uint8_t *packed = NULL;
    size_t packed_bytes = 0;
    bool is_there;
    shelf_file_name(rest, name);
    snprintf(path, sizeof path, "%s/%s", shard, name);
    int result =
        shelf_get(url, path, (size_t)entry.packed_bytes, source->timeout_ms, &packed, &packed_bytes, &is_there, error);
    if (result == 0 && !is_there)
        result = base_fail(error, BASE_ERR_TABLE, "", 0, "the index names it, but it is not there");
    if (result == 0)
        result = unpack((struct base_bytes){packed, packed_bytes}, &entry, wanted, table, table_size, error);
    result = end_check(&check, result, error);
    free(packed);
    if (result != 0) {
        free(*table);
        *table = NULL;
    }
    return result;
}

struct shelf_wanted shelf_wanted_of(const struct input_image *image)
{
    return (struct shelf_wanted){image->arch, image->identity, image->identity_size, image};
}

enum shelf_answer shelf_take(const struct shelf_source *source, const struct shelf_wanted *wanted, uint8_t **table,
                             size_t *table_size, size_t *from, struct base_error *error)
{
    enum shelf_answer answer = SHELF_MISSING;
    *table = NULL;
    if (wanted->identity_size < 2 || wanted->identity_size > QUT_IDENTITY_MAX)
        return SHELF_MISSING;
    for (size_t i = 0; i < source->url_count; i++) {
        bool found, recalled = true;
        struct base_error why = {0};
        int result = take_from(source, source->urls[i], wanted, &found, &recalled, table, table_size, &why);
        if (result != 0 && recalled) {
            // The table may have been made anew since the index was asked for.
            recalled = false;
            why = (struct base_error){0};
            result = take_from(source, source->urls[i], wanted, &found, &recalled, table, table_size, &why);
        }
        if (result != 0) {
            // Kept of the first; the next may have it.
            if (answer == SHELF_MISSING)
                base_fail(error, why.reason, "", 0, "%s: %s", source->urls[i], why.detail);
            answer = SHELF_REFUSED;
        } else if (found) {
            *from = i;
            return SHELF_TAKEN;
        }
    }
    return answer;
}
