// SPDX-License-Identifier: Apache-2.0
// A folder of requests, a file each. A request is there when its file has its name: whole, synced, the folder too. It
// is taken when the account says so; that follows at once, or when the folder is opened next. What was sent or dropped
// is in the account before its file goes.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/export/sink/sink.h"
#include "tracer/upload/inside.h"

static uint64_t hash_of(const char *id)
{
    return base_hash_bytes(0, id, strlen(id));
}

struct upload_item *upload_spool_find(struct upload_spool *spool, const char *id)
{
    for (uint32_t step = 0, i; (i = base_hash_next(&spool->index, hash_of(id), &step)) != BASE_HASH_NONE;)
        if (strcmp(spool->items[i].id, id) == 0)
            return &spool->items[i];
    return NULL;
}

const char *upload_file_name(const struct upload_item *item, char name[UPLOAD_FILE_CHARS])
{
    snprintf(name, UPLOAD_FILE_CHARS, "%s.%s", item->id, upload_form_name(item->form));
    return name;
}

char *upload_path(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

struct upload_record upload_record_of(const char *word, const struct upload_item *item, uint64_t number,
                                      const char *reason)
{
    struct upload_record record = {.number = number};
    snprintf(record.word, sizeof record.word, "%s", word);
    snprintf(record.id, sizeof record.id, "%s", item ? item->id : "-");
    snprintf(record.form, sizeof record.form, "%s", item ? upload_form_name(item->form) : "-");
    snprintf(record.reason, sizeof record.reason, "%s", reason);
    return record;
}

static void count_reason(struct upload_balance *balance, const char *reason, uint64_t count)
{
    size_t i = 0;
    while (i < balance->reason_count && strcmp(balance->reasons[i].text, reason) != 0)
        i++;
    if (i == UPLOAD_REASONS_MAX)
        i--; // the last one has the rest
    else if (i == balance->reason_count)
        snprintf(balance->reasons[balance->reason_count++].text, UPLOAD_REASON_CHARS, "%s", reason);
    balance->reasons[i].count += count;
    balance->dropped += count;
}

static struct upload_item *item_of(struct upload_spool *spool, const struct upload_record *record)
{
    struct upload_item *item = upload_spool_find(spool, record->id);
    if (item)
        return item;
    item = BASE_ADD(spool);
    if (!item || !base_hash_add(&spool->index, hash_of(record->id), (uint32_t)spool->count - 1))
        return NULL;
    *item = (struct upload_item){.state = UPLOAD_STATE_DROPPED};
    memcpy(item->id, record->id, sizeof item->id);
    return item;
}

static void end_waiting(struct upload_spool *spool, struct upload_item *item, enum upload_state state)
{
    item->state = state;
    spool->balance.waiting--;
    spool->balance.waiting_bytes -= item->bytes;
}

int upload_spool_apply(void *context, const struct upload_record *record, struct base_error *error)
{
    struct upload_spool *spool = context;
    struct upload_balance *balance = &spool->balance;
    if (strcmp(record->word, "+sent") == 0) {
        balance->taken += record->number;
        balance->sent += record->number;
        return 0;
    }
    if (strcmp(record->word, "+dropped") == 0) {
        balance->taken += record->number;
        count_reason(balance, record->reason, record->number);
        return 0;
    }
    if (strcmp(record->word, "+reject") == 0) {
        balance->rejected += record->number;
        return 0;
    }
    if (strcmp(record->word, "+split") == 0) {
        balance->split += record->number;
        return 0;
    }
    struct upload_item *item = item_of(spool, record);
    if (!item)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "spool");
    const bool waits = item->state == UPLOAD_STATE_WAITS;
    if (strcmp(record->word, "taken") == 0 && !waits && upload_form_named(record->form, &item->form)) {
        item->state = UPLOAD_STATE_WAITS;
        item->bytes = record->number;
        balance->taken++;
        balance->waiting++;
        balance->waiting_bytes += item->bytes;
        balance->taken_bytes += item->bytes;
    } else if (strcmp(record->word, "sent") == 0 && waits) {
        end_waiting(spool, item, UPLOAD_STATE_SENT);
        balance->sent++;
        balance->rejected += record->number;
    } else if (strcmp(record->word, "dropped") == 0 && waits) {
        end_waiting(spool, item, UPLOAD_STATE_DROPPED);
        count_reason(balance, record->reason, 1);
    } else if (strcmp(record->word, "split") == 0 && waits) {
        end_waiting(spool, item, UPLOAD_STATE_SPLIT);
        balance->taken--;
        balance->split++;
    } else if (strcmp(record->word, "known") == 0 && !waits) {
        item->state = UPLOAD_STATE_SENT;
    } else {
        return base_fail(error, BASE_ERR_MALFORMED, "account", 0, "%s of %s cannot be", record->word, record->id);
    }
    return 0;
}

int upload_spool_note(struct upload_spool *spool, const struct upload_record *record, struct base_error *error)
{
    return upload_account_add(&spool->account, record, error) == 0 ? upload_spool_apply(spool, record, error) : -1;
}

static int end_item(struct upload_spool *spool, struct upload_item *item, const struct upload_record *record,
                    struct base_error *error)
{
    char name[UPLOAD_FILE_CHARS];
    if (upload_spool_note(spool, record, error) != 0)
        return -1;
    unlinkat(spool->at, upload_file_name(item, name), 0); // a file that stays goes when the folder is opened
    return 0;
}

int upload_spool_drop(struct upload_spool *spool, struct upload_item *item, const char *reason,
                      struct base_error *error)
{
    const struct upload_record record = upload_record_of("dropped", item, 0, reason);
    return end_item(spool, item, &record, error);
}

int upload_spool_sent(struct upload_spool *spool, struct upload_item *item, uint64_t rejected, struct base_error *error)
{
    const struct upload_record record = upload_record_of("sent", item, rejected, "-");
    return end_item(spool, item, &record, error);
}

// ---- taking

static int write_body(const char *path, const struct upload_request *request, struct base_error *error)
{
    struct sink *sink = sink_file(path, error);
    if (!sink)
        return -1;
    sink_sync(sink);
    if (request->form != UPLOAD_FILE) {
        struct sink *packed = sink_gzip(sink);
        if (!packed) {
            sink_close(sink, false, NULL);
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
        }
        sink = packed;
    }
    sink_bytes(sink, request->body.data, request->body.size);
    return sink_close(sink, true, error);
}

// The oldest go. Without the new one, if it has no room even then.
static int make_room(struct upload_spool *spool, uint64_t bytes, struct base_error *error)
{
    for (size_t i = 0; i < spool->count && spool->balance.waiting_bytes + bytes > spool->max_bytes; i++)
        if (spool->items[i].state == UPLOAD_STATE_WAITS &&
            upload_spool_drop(spool, &spool->items[i], "spool-full", error) != 0)
            return -1;
    return 0;
}

static int take_and_drop(struct upload_spool *spool, const struct upload_item *item, const char *reason,
                         struct base_error *error)
{
    const struct upload_record record = upload_record_of("taken", item, item->bytes, "-");
    if (upload_spool_note(spool, &record, error) != 0)
        return -1;
    struct upload_item *taken = upload_spool_find(spool, item->id);
    return taken ? upload_spool_drop(spool, taken, reason, error) : -1;
}

static int take_file(struct upload_spool *spool, struct upload_item *item, const char *path,
                     const struct upload_request *request, enum upload_taken *how, struct base_error *error)
{
    struct stat status;
    struct base_error why = {0};
    if (write_body(path, request, &why) != 0 || fsync(spool->at) != 0 || stat(path, &status) != 0) {
        unlink(path);
        *how = UPLOAD_DROPPED;
        return take_and_drop(spool, item, why.reason == BASE_ERR_NO_MEMORY ? "no-memory" : "not-written", error);
    }
    item->bytes = (uint64_t)status.st_size;
    if (item->bytes > spool->max_bytes) {
        *how = UPLOAD_DROPPED;
        return take_and_drop(spool, item, "spool-full", error);
    }
    const struct upload_record record = upload_record_of("taken", item, item->bytes, "-");
    return make_room(spool, item->bytes, error) == 0 ? upload_spool_note(spool, &record, error) : -1;
}

int upload_spool_take(struct upload_spool *spool, const struct upload_request *request, enum upload_taken *how,
                      struct base_error *error)
{
    const struct upload_item *before = upload_spool_find(spool, request->id);
    struct upload_item item = {.form = request->form, .bytes = request->body.size};
    if (before && before->state != UPLOAD_STATE_DROPPED) {
        *how = before->state == UPLOAD_STATE_WAITS ? UPLOAD_WAITS_ALREADY : UPLOAD_SENT_BEFORE;
        return 0;
    }
    memcpy(item.id, request->id, sizeof item.id);
    // Its own two records, and one for each that waits.
    if (upload_account_reserve(&spool->account, spool->balance.waiting + 2, error) != 0)
        return -1;
    *how = UPLOAD_TAKEN;
    if (request->is_too_large) {
        *how = UPLOAD_DROPPED;
        return take_and_drop(spool, &item, "too-large", error);
    }
    char name[UPLOAD_FILE_CHARS];
    char *path = upload_path(spool->folder, upload_file_name(&item, name));
    const int result = path ? take_file(spool, &item, path, request, how, error)
                            : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    free(path);
    return result;
}

bool upload_spool_knows(struct upload_spool *spool, const char *id)
{
    return upload_spool_find(spool, id) != NULL;
}

void upload_spool_balance(const struct upload_spool *spool, struct upload_balance *balance)
{
    *balance = spool->balance;
}

// ---- opening

static int lock_folder(struct upload_spool *spool, struct base_error *error)
{
    if (mkdir(spool->folder, 0700) != 0 && errno != EEXIST)
        return base_fail_errno(error, errno);
    spool->at = open(spool->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spool->lock = spool->at >= 0 ? openat(spool->at, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (spool->lock < 0)
        return base_fail_errno(error, errno);
    if (flock(spool->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? base_fail(error, BASE_ERR_IO, "", 0, "another process uses this spool")
                                : base_fail_errno(error, errno);
}

static int open_account(struct upload_spool *spool, struct base_error *error)
{
    char *path = upload_path(spool->folder, "account");
    if (!path)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "spool");
    int result = upload_account_open(&spool->account, path, upload_spool_apply, spool, error);
    if (result == 0)
        result = upload_spool_recover(spool, error);
    if (result == 0)
        upload_spool_shorten(spool, path);
    free(path);
    return result;
}

struct upload_spool *upload_spool_open(const char *folder, uint64_t max_bytes, struct base_error *error)
{
    struct upload_spool *spool = calloc(1, sizeof *spool);
    if (!spool) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "spool");
        return NULL;
    }
    spool->lock = spool->at = spool->account.fd = -1;
    spool->max_bytes = max_bytes;
    spool->folder = strdup(folder);
    if (spool->folder && lock_folder(spool, error) == 0 && open_account(spool, error) == 0)
        return spool;
    if (!spool->folder)
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "spool");
    upload_spool_close(spool);
    return NULL;
}

void upload_spool_close(struct upload_spool *spool)
{
    if (!spool)
        return;
    upload_account_close(&spool->account);
    if (spool->lock >= 0)
        close(spool->lock);
    if (spool->at >= 0)
        close(spool->at);
    base_vector_free(&spool->vector);
    base_hash_free(&spool->index);
    free(spool->folder);
    free(spool);
}
