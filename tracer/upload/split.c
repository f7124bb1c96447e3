// SPDX-License-Identifier: Apache-2.0
// A request that waits becomes two. The account says so first, in one record: from then on it is two that are to be
// taken, and its file stays until they are. Halves of the same file are the same bytes with the same ids, so whoever
// opens the spool next can finish what was begun.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "tracer/export/sink/sink.h"
#include "tracer/upload/inside.h"

enum { UNPACKED_MAX_BYTES = 256 << 20, GZIP_LEAST_BYTES = 18, GZIP_SIZE_BYTES = 4 };

struct halves {
    struct sink *sinks[2];
    struct upload_request requests[2];
};

static void free_halves(struct halves *halves)
{
    for (unsigned i = 0; i < 2; i++)
        if (halves->sinks[i])
            sink_close(halves->sinks[i], false, NULL);
}

static int read_file(const struct upload_spool *spool, const char *name, uint8_t **bytes, size_t *size,
                     struct base_error *error)
{
    struct stat status;
    const int fd = openat(spool->at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > UNPACKED_MAX_BYTES) {
        base_fail(error, BASE_ERR_IO, "", 0, "the request's file cannot be read");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *size = (size_t)status.st_size;
    *bytes = malloc(*size + 1);
    size_t done = 0;
    ssize_t part = *bytes ? 1 : 0;
    while (part > 0 && done < *size) {
        part = pread(fd, *bytes + done, *size - done, (off_t)done);
        done += part > 0 ? (size_t)part : 0;
    }
    close(fd);
    if (*bytes && done == *size)
        return 0;
    base_fail(error, *bytes ? BASE_ERR_IO : BASE_ERR_NO_MEMORY, "", 0, "request");
    free(*bytes);
    return -1;
}

static int unpack_file(const struct upload_spool *spool, const char *name, struct base_bytes *body,
                       struct base_error *error)
{
    uint8_t *packed, *bytes = NULL;
    size_t packed_bytes;
    if (read_file(spool, name, &packed, &packed_bytes, error) != 0)
        return -1;
    uint32_t size = UINT32_MAX; // modulo 2^32, and bodies are shorter
    if (packed_bytes >= GZIP_LEAST_BYTES)
        memcpy(&size, packed + packed_bytes - GZIP_SIZE_BYTES, sizeof size);
    int result = -1;
    if (size > UNPACKED_MAX_BYTES)
        base_fail(error, BASE_ERR_MALFORMED, "", 0, "the request's file is none");
    else if (!(bytes = malloc((size_t)size + 1)))
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    else
        result = base_ungzip((struct base_bytes){packed, packed_bytes}, bytes, size, "request", error);
    free(packed);
    if (result == 0)
        *body = (struct base_bytes){bytes, size};
    else
        free(bytes);
    return result;
}

static void id_of_half(const struct upload_item *item, unsigned half, char id[UPLOAD_ID_CHARS])
{
    const size_t size = strlen(item->id);
    snprintf(id, UPLOAD_ID_CHARS, "%016" PRIx64 "%016" PRIx64, base_hash_bytes(5 + half, item->id, size),
             base_hash_bytes(7 + half, item->id, size));
}

// 0; 1: it has one sample, or its form knows no halves; -1.
static int make_halves(const struct upload_spool *spool, const struct upload_item *item, struct halves *halves,
                       struct base_error *error)
{
    char name[UPLOAD_FILE_CHARS];
    struct base_bytes body;
    *halves = (struct halves){.sinks = {NULL}};
    if (item->form == UPLOAD_FILE)
        return 1;
    if (unpack_file(spool, upload_file_name(item, name), &body, error) != 0)
        return -1;
    int result = 0;
    for (unsigned i = 0; i < 2 && result == 0; i++) {
        struct upload_request *request = &halves->requests[i];
        halves->sinks[i] = sink_in_memory();
        if (!halves->sinks[i]) {
            result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
            break;
        }
        request->form = item->form;
        id_of_half(item, i, request->id);
        result = upload_halve(item->form, body, i, request->id, halves->sinks[i], error);
        request->body.data = sink_memory(halves->sinks[i], &request->body.size);
    }
    free((void *)(uintptr_t)body.data);
    return result;
}

static int take_halves(struct upload_spool *spool, const struct upload_item *item, const struct halves *halves,
                       struct base_error *error)
{
    char name[UPLOAD_FILE_CHARS];
    enum upload_taken how;
    for (unsigned i = 0; i < 2; i++)
        if (upload_spool_take(spool, &halves->requests[i], &how, error) != 0)
            return -1; // the file stays, and so what is left to do
    unlinkat(spool->at, upload_file_name(item, name), 0);
    return 0;
}

int upload_spool_split(struct upload_spool *spool, size_t place, struct base_error *error)
{
    const struct upload_item item = spool->items[place]; // a copy: others will be taken
    const struct upload_record record = upload_record_of("split", &item, 0, "-");
    struct base_error why = {0};
    struct halves halves;
    int result = make_halves(spool, &item, &halves, &why);
    if (result < 0)
        result = why.reason == BASE_ERR_NO_MEMORY ? base_fail_as(error, &why) : 1;
    if (result == 0)
        result = upload_spool_note(spool, &record, error);
    if (result == 0)
        result = take_halves(spool, &item, &halves, error);
    free_halves(&halves);
    return result;
}

int upload_spool_finish_split(struct upload_spool *spool, size_t place, struct base_error *error)
{
    const struct upload_item item = spool->items[place];
    struct base_error why = {0};
    struct halves halves;
    int result = make_halves(spool, &item, &halves, &why);
    if (result == 0) {
        result = take_halves(spool, &item, &halves, error);
    } else if (why.reason == BASE_ERR_NO_MEMORY) {
        result = base_fail_as(error, &why);
    } else { // somebody changed it since
        const struct upload_record record = upload_record_of("taken", &item, item.bytes, "-");
        result = upload_account_reserve(&spool->account, spool->balance.waiting + 2, error);
        if (result == 0)
            result = upload_spool_note(spool, &record, error);
        if (result == 0)
            result = upload_spool_drop(spool, &spool->items[place], "damaged", error);
    }
    free_halves(&halves);
    return result;
}
