// SPDX-License-Identifier: Apache-2.0
// What was taken, and what became of it: only appended to, a record with each write, synced. Room is the file's before
// anything is taken that will need it, so a disk that becomes full keeps nobody from writing off what was sent.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/upload/inside.h"

enum { TEXT_BYTES = 110, CHECK_AT = 111, CHECK_DIGITS = 16, STEP_BYTES = 1 << 16, ACCOUNT_MAX_BYTES = 256 << 20 };

static void print_check(const char *text, char check[CHECK_DIGITS + 1])
{
    snprintf(check, CHECK_DIGITS + 1, "%016" PRIx64, base_hash_bytes(0, text, TEXT_BYTES));
}

static void print_record(const struct upload_record *record, char text[UPLOAD_RECORD_BYTES])
{
    char line[UPLOAD_RECORD_BYTES], check[CHECK_DIGITS + 1];
    const int size = snprintf(line, TEXT_BYTES, "%s %s %" PRIu64 " %s %s", record->word, record->id, record->number,
                              record->form, record->reason);
    memset(text, ' ', UPLOAD_RECORD_BYTES);
    memcpy(text, line, size < TEXT_BYTES ? (size_t)size : TEXT_BYTES - 1);
    print_check(text, check);
    memcpy(text + CHECK_AT, check, CHECK_DIGITS);
    text[UPLOAD_RECORD_BYTES - 1] = '\n';
}

static bool read_record(const char text[UPLOAD_RECORD_BYTES], struct upload_record *record)
{
    char line[TEXT_BYTES + 1], check[CHECK_DIGITS + 1];
    memcpy(line, text, TEXT_BYTES);
    line[TEXT_BYTES] = '\0';
    print_check(text, check);
    return memcmp(text + CHECK_AT, check, CHECK_DIGITS) == 0 &&
           sscanf(line, "%8s %32s %20" SCNu64 " %8s %23s", record->word, record->id, &record->number, record->form,
                  record->reason) == 5;
}

int upload_account_create(struct upload_account *account, const char *path, struct base_error *error)
{
    *account = (struct upload_account){.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    return account->fd >= 0 ? 0 : base_fail_errno(error, errno);
}

static bool is_zero(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static int read_records(struct upload_account *account, const char *bytes,
                        int (*each)(void *context, const struct upload_record *record, struct base_error *error),
                        void *context, struct base_error *error)
{
    const uint64_t whole = account->room - account->room % UPLOAD_RECORD_BYTES;
    for (; account->used < whole && bytes[account->used]; account->used += UPLOAD_RECORD_BYTES) {
        struct upload_record record;
        if (!read_record(bytes + account->used, &record)) {
            const uint64_t behind = account->used + UPLOAD_RECORD_BYTES;
            if (is_zero(bytes + behind, (size_t)(account->room - behind)))
                return 0; // it was being written
            return base_fail(error, BASE_ERR_MALFORMED, "account", account->used, "not as it was written");
        }
        if (each(context, &record, error) != 0)
            return -1;
    }
    return 0;
}

int upload_account_open(struct upload_account *account, const char *path,
                        int (*each)(void *context, const struct upload_record *record, struct base_error *error),
                        void *context, struct base_error *error)
{
    struct stat status;
    *account = (struct upload_account){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (account->fd < 0 || fstat(account->fd, &status) != 0)
        return base_fail_errno(error, errno);
    if (!S_ISREG(status.st_mode) || status.st_size > ACCOUNT_MAX_BYTES)
        return base_fail(error, BASE_ERR_LIMIT, "account", 0, "it is no account of a spool");
    account->room = (uint64_t)status.st_size;
    char *bytes = malloc((size_t)account->room + 1);
    if (!bytes)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "account");
    uint64_t done = 0;
    ssize_t part = 1;
    while (done < account->room && part > 0) {
        part = pread(account->fd, bytes + done, (size_t)(account->room - done), (off_t)done);
        done += part > 0 ? (uint64_t)part : 0;
    }
    account->room = done;
    int result = part < 0 ? base_fail_errno(error, errno) : read_records(account, bytes, each, context, error);
    free(bytes);
    return result;
}

static int grow(const struct upload_account *account, uint64_t to)
{
    return posix_fallocate(account->fd, (off_t)account->room, (off_t)(to - account->room));
}

int upload_account_reserve(struct upload_account *account, uint64_t records, struct base_error *error)
{
    const uint64_t least = account->used + records * UPLOAD_RECORD_BYTES;
    if (least <= account->room)
        return 0;
    uint64_t to = (least + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    int why = grow(account, to);
    if (why) {
        to = least;
        why = grow(account, to);
    }
    if (why)
        return base_fail_errno(error, why);
    account->room = to;
    return fsync(account->fd) == 0 ? 0 : base_fail_errno(error, errno);
}

int upload_account_add(struct upload_account *account, const struct upload_record *record, struct base_error *error)
{
    char text[UPLOAD_RECORD_BYTES];
    print_record(record, text);
    for (size_t done = 0; done < sizeof text;) {
        const ssize_t part = pwrite(account->fd, text + done, sizeof text - done, (off_t)(account->used + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return base_fail_errno(error, part ? errno : ENOSPC);
        done += (size_t)part;
    }
    if (fdatasync(account->fd) != 0)
        return base_fail_errno(error, errno);
    account->used += sizeof text;
    account->room = account->room < account->used ? account->used : account->room;
    return 0;
}

void upload_account_close(struct upload_account *account)
{
    if (account->fd >= 0)
        close(account->fd);
    account->fd = -1;
}
