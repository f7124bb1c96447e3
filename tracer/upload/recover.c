// SPDX-License-Identifier: Apache-2.0
// What a process left that ended at any instant, and an account that has become long.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/upload/inside.h"

enum { LONG_RECORDS = 8192, REMEMBERED = 1024, ID_DIGITS = UPLOAD_ID_CHARS - 1 };

// "ID.otlp"
static bool is_request(const char *name, struct upload_item *item)
{
    if (strspn(name, "0123456789abcdef") != ID_DIGITS || name[ID_DIGITS] != '.' ||
        !upload_form_named(name + ID_DIGITS + 1, &item->form))
        return false;
    memcpy(item->id, name, ID_DIGITS);
    item->id[ID_DIGITS] = '\0';
    return true;
}

static int meet_file(struct upload_spool *spool, const char *name, struct base_error *error)
{
    struct upload_item found = {.bytes = 0};
    struct stat status;
    const size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".part") == 0 && name[0] != '.') {
        unlinkat(spool->at, name, 0); // where files cannot be without a name
        return 0;
    }
    if (!is_request(name, &found) || fstatat(spool->at, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    struct upload_item *item = upload_spool_find(spool, found.id);
    if (item && item->state == UPLOAD_STATE_WAITS && item->form == found.form) {
        item->has_file = true;
        return (uint64_t)status.st_size == item->bytes ? 0 : upload_spool_drop(spool, item, "damaged", error);
    }
    if (item && item->state == UPLOAD_STATE_SPLIT && item->form == found.form) {
        item->has_file = true; // it was being split
        return 0;
    }
    if (item) {
        unlinkat(spool->at, name, 0); // the account had its end
        return 0;
    }
    found.bytes = (uint64_t)status.st_size;
    const struct upload_record record = upload_record_of("taken", &found, found.bytes, "-");
    if (upload_account_reserve(&spool->account, spool->balance.waiting + 2, error) != 0 ||
        upload_spool_note(spool, &record, error) != 0)
        return -1;
    item = upload_spool_find(spool, found.id);
    if (item)
        item->has_file = true;
    return 0;
}

int upload_spool_recover(struct upload_spool *spool, struct base_error *error)
{
    const int copy = dup(spool->at);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    if (!folder) {
        base_fail_errno(error, errno);
        if (copy >= 0)
            close(copy);
        return -1;
    }
    int result = 0;
    errno = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL; errno = 0)
        result = meet_file(spool, entry->d_name, error);
    if (result == 0 && errno)
        result = base_fail_errno(error, errno);
    closedir(folder);
    for (size_t i = 0; result == 0 && i < spool->count; i++)
        if (spool->items[i].state == UPLOAD_STATE_WAITS && !spool->items[i].has_file)
            result = upload_spool_drop(spool, &spool->items[i], "gone", error);
    for (size_t i = 0; result == 0 && i < spool->count; i++)
        if (spool->items[i].state == UPLOAD_STATE_SPLIT && spool->items[i].has_file)
            result = upload_spool_finish_split(spool, i, error);
    return result;
}

static int write_sums(const struct upload_spool *spool, struct upload_account *account, struct base_error *error)
{
    const struct upload_balance *balance = &spool->balance;
    struct upload_record record = upload_record_of("+sent", NULL, balance->sent, "-");
    int result = upload_account_add(account, &record, error);
    record = upload_record_of("+reject", NULL, balance->rejected, "-");
    result = result == 0 ? upload_account_add(account, &record, error) : -1;
    record = upload_record_of("+split", NULL, balance->split, "-");
    result = result == 0 ? upload_account_add(account, &record, error) : -1;
    for (size_t i = 0; i < balance->reason_count && result == 0; i++) {
        record = upload_record_of("+dropped", NULL, balance->reasons[i].count, balance->reasons[i].text);
        result = upload_account_add(account, &record, error);
    }
    return result;
}

static int write_items(const struct upload_spool *spool, struct upload_account *account, struct base_error *error)
{
    size_t sent = 0, met = 0;
    int result = 0;
    for (size_t i = 0; i < spool->count; i++)
        sent += spool->items[i].state == UPLOAD_STATE_SENT || spool->items[i].state == UPLOAD_STATE_SPLIT;
    for (size_t i = 0; i < spool->count && result == 0; i++) {
        const struct upload_item *item = &spool->items[i];
        struct upload_record record = upload_record_of("taken", item, item->bytes, "-");
        if (item->state == UPLOAD_STATE_DROPPED)
            continue;
        if (item->state != UPLOAD_STATE_WAITS) {
            if (++met + REMEMBERED <= sent)
                continue;
            record = upload_record_of("known", item, 0, "-");
        }
        result = upload_account_add(account, &record, error);
    }
    return result;
}

// Where there is no room for it the old one stays: it says the same.
void upload_spool_shorten(struct upload_spool *spool, const char *account_path)
{
    struct upload_account account = {.fd = -1};
    struct base_error error = {0};
    char *path = upload_path(spool->folder, "account.part");
    const uint64_t records = spool->balance.waiting + spool->balance.reason_count + 3 + REMEMBERED;
    if (path && spool->account.used > (uint64_t)LONG_RECORDS * UPLOAD_RECORD_BYTES &&
        upload_account_create(&account, path, &error) == 0) {
        const bool is_good = upload_account_reserve(&account, records + spool->balance.waiting, &error) == 0 &&
                             write_sums(spool, &account, &error) == 0 && write_items(spool, &account, &error) == 0 &&
                             fsync(account.fd) == 0 && rename(path, account_path) == 0;
        if (is_good) {
            fsync(spool->at);
            upload_account_close(&spool->account);
            spool->account = account;
        } else {
            unlink(path);
            upload_account_close(&account);
        }
    }
    free(path);
}
