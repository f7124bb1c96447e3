// SPDX-License-Identifier: Apache-2.0
// One GET, by libcurl: bounded in time and bytes, http and https alone, certificates verified.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/shelf/curl_late.h"
#include "qutc/shelf/inside.h"

enum { REDIRECTS_MAX = 3 };

struct body {
    uint8_t *bytes;
    size_t size, room, most;
    bool is_too_large, is_without_memory;
};

static size_t take_part(char *part, size_t unit, size_t count, void *context)
{
    struct body *body = context;
    size_t size = unit * count;
    if (size > body->most - body->size) {
        body->is_too_large = true;
        return 0;
    }
    if (body->size + size > body->room) {
        size_t room = body->room ? 2 * body->room : 1 << 16;
        room = room < body->size + size ? body->size + size : room;
        uint8_t *grown = realloc(body->bytes, room);
        if (!grown) {
            body->is_without_memory = true;
            return 0;
        }
        body->bytes = grown;
        body->room = room;
    }
    memcpy(body->bytes + body->size, part, size);
    body->size += size;
    return size;
}

int shelf_check_url(const char *url, struct base_error *error)
{
    const struct shelf_curl *curl = shelf_curl(error);
    CURLU *parts = curl ? curl->url() : NULL;
    if (!curl)
        return -1;
    char *user = NULL, *scheme = NULL;
    bool is_url = parts && curl->url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                  curl->url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                  (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    bool has_user = is_url && curl->url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK;
    curl->free(user);
    curl->free(scheme);
    curl->url_cleanup(parts);
    if (!is_url)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "it is none of http or https");
    return has_user ? base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "a user in it would be seen by others: ~/.netrc")
                    : 0;
}

static bool is_absent(long status)
{
    // Buckets that may not be listed answer 403 for what they do not have.
    return status == 403 || status == 404 || status == 410;
}

static CURLcode ask(const struct shelf_curl *curl, CURL *request, const char *address, unsigned timeout_ms,
                    struct body *body)
{
    curl->easy_setopt(request, CURLOPT_URL, address);
    curl->easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(request, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(request, CURLOPT_FOLLOWLOCATION, 1L);
    curl->easy_setopt(request, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    curl->easy_setopt(request, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl->easy_setopt(request, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    curl->easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(request, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    curl->easy_setopt(request, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)body->most);
    curl->easy_setopt(request, CURLOPT_WRITEFUNCTION, take_part);
    curl->easy_setopt(request, CURLOPT_WRITEDATA, body);
    return curl->easy_perform(request);
}

int shelf_get(const char *url, const char *path, size_t max_bytes, unsigned timeout_ms, uint8_t **body_bytes,
              size_t *size, bool *is_there, struct base_error *error)
{
    struct body body = {.most = max_bytes};
    char *address = NULL;
    *body_bytes = NULL;
    *is_there = false;
    const struct shelf_curl *curl = shelf_curl(error);
    if (!curl || shelf_check_url(url, error) != 0)
        return -1;
    size_t length = strlen(url);
    CURL *request = curl->easy_init();
    if (!request || asprintf(&address, "%s%s%s", url, length && url[length - 1] == '/' ? "" : "/", path) < 0) {
        curl->easy_cleanup(request);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    }
    CURLcode code = ask(curl, request, address, timeout_ms, &body);
    long status = 0;
    curl->easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_cleanup(request);
    free(address);
    int result = 0;
    if (body.is_without_memory)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "answer");
    else if (body.is_too_large || code == CURLE_FILESIZE_EXCEEDED)
        result = base_fail(error, BASE_ERR_LIMIT, "", 0, "%s has more than %zu bytes", path, max_bytes);
    else if (code != CURLE_OK)
        result = base_fail(error, BASE_ERR_IO, "", 0, "%s", curl->easy_strerror(code));
    else if (status != 200 && !is_absent(status))
        result = base_fail(error, BASE_ERR_IO, "", 0, "status %ld for %s", status, path);
    if (result == 0 && status == 200) {
        *is_there = true;
        *body_bytes = body.bytes;
        *size = body.size;
    } else {
        free(body.bytes);
    }
    return result;
}
