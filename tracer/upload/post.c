// SPDX-License-Identifier: Apache-2.0
// One request over HTTP, by libcurl: http and https alone, certificates verified, no redirect followed, proxies as
// libcurl's environment variables say. What is secret comes from files, and goes nowhere but into the request.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "qutc/shelf/curl_late.h"
#include "qutc/shelf/shelf.h"
#include "tracer/upload/inside.h"

struct upload_client {
    const struct shelf_curl *curl;
    CURL *request;
    const struct upload_target *target;
    char *url; // with the form's path; {id} stands in it as it was given
    struct curl_slist *headers;
};

enum { SECRET_MAX_BYTES = 16384, ANSWER_MAX_BYTES = 4 << 20 };

static const char id_mark[] = "{id}";

bool upload_is_built(void)
{
    return true;
}

static int add_header(struct upload_client *client, const char *name, const char *value, struct base_error *error)
{
    char *line = NULL;
    struct curl_slist *longer = NULL;
    if (asprintf(&line, "%s: %s", name, value) >= 0)
        longer = client->curl->slist_append(client->headers, line);
    else
        line = NULL;
    free(line);
    if (!longer)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    client->headers = longer;
    return 0;
}

// Its first SECRET_MAX_BYTES as text. NULL, *error filled.
static char *read_secret(const char *path, struct base_error *error)
{
    char *text = malloc(SECRET_MAX_BYTES + 1);
    FILE *file = text ? fopen(path, "re") : NULL;
    const int why = errno;
    const size_t size = file ? fread(text, 1, SECRET_MAX_BYTES + 1, file) : 0;
    if (file && !ferror(file) && size && size <= SECRET_MAX_BYTES && !memchr(text, '\0', size)) {
        text[size] = '\0';
        fclose(file);
        return text;
    }
    if (!text)
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    else
        base_fail(error, BASE_ERR_IO, "", 0, "cannot read %s: %s", path, file ? "it is no short text" : strerror(why));
    if (file)
        fclose(file);
    free(text);
    return NULL;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 127)
            return false;
    return true;
}

static int take_token(struct upload_client *client, struct base_error *error)
{
    char *token = read_secret(client->target->token_file, error), *value = NULL;
    if (!token)
        return -1;
    token[strcspn(token, "\r\n")] = '\0';
    int result;
    if (!*token || !is_printable(token)) {
        result = base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s has no token in its first line",
                           client->target->token_file);
    } else if (asprintf(&value, "Bearer %s", token) < 0) {
        value = NULL;
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    } else {
        result = add_header(client, "Authorization", value, error);
    }
    free(value);
    free(token);
    return result;
}

// "Name: value" in each line.
static int take_headers(struct upload_client *client, struct base_error *error)
{
    char *text = read_secret(client->target->header_file, error), *rest = text;
    int result = text ? 0 : -1;
    for (char *line; result == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        line[strcspn(line, "\r")] = '\0';
        char *colon = strchr(line, ':');
        if (!*line)
            continue;
        if (!colon || colon == line || !is_printable(line)) {
            result = base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s: a line is no \"Name: value\"",
                               client->target->header_file);
            break;
        }
        *colon = '\0';
        result = add_header(client, line, colon + 1 + strspn(colon + 1, " "), error);
    }
    free(text);
    return result;
}

static bool is_here(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

// Without a path of its own the URL gets the one that the protocol has. A token is for nobody on the way.
static int take_url(struct upload_client *client, struct base_error *error)
{
    static const char *const paths[UPLOAD_FORM_COUNT] = {"/v1development/profiles", "/push.v1.PusherService/Push",
                                                         NULL};
    const struct upload_target *target = client->target;
    if (shelf_check_url(target->url, error) != 0)
        return -1;
    const struct shelf_curl *curl = client->curl;
    CURLU *parts = curl->url();
    char *path = NULL, *query = NULL, *scheme = NULL, *host = NULL, *whole = NULL;
    bool is_good = parts && curl->url_set(parts, CURLUPART_URL, target->url, 0) == CURLUE_OK &&
                   curl->url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                   curl->url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                   curl->url_get(parts, CURLUPART_PATH, &path, 0) == CURLUE_OK;
    const bool has_query = is_good && curl->url_get(parts, CURLUPART_QUERY, &query, 0) == CURLUE_OK;
    const bool is_open = is_good && strcmp(scheme, "https") != 0 && !is_here(host);
    if (is_good && paths[target->form] && strcmp(path, "/") == 0 && !has_query)
        is_good = curl->url_set(parts, CURLUPART_PATH, paths[target->form], 0) == CURLUE_OK &&
                  curl->url_get(parts, CURLUPART_URL, &whole, 0) == CURLUE_OK;
    if (is_good)
        client->url = strdup(whole ? whole : target->url);
    curl->free(path);
    curl->free(query);
    curl->free(scheme);
    curl->free(host);
    curl->free(whole);
    curl->url_cleanup(parts);
    if (is_open && (target->token_file || target->header_file))
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "a token or header from a file goes by https only");
    return client->url ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
}

bool upload_client_takes_many(const struct upload_client *client)
{
    return client->target->form != UPLOAD_FILE || strstr(client->url, id_mark);
}

static int take_form(struct upload_client *client, struct base_error *error)
{
    static const char *const types[UPLOAD_FORM_COUNT] = {"application/x-protobuf", "application/proto",
                                                         "application/octet-stream"};
    const enum upload_form form = client->target->form;
    if (add_header(client, "Content-Type", types[form], error) != 0 || add_header(client, "Expect", "", error) != 0)
        return -1;
    if (form == UPLOAD_PPROF && add_header(client, "Connect-Protocol-Version", "1", error) != 0)
        return -1;
    return form == UPLOAD_FILE ? add_header(client, "If-None-Match", "*", error)
                               : add_header(client, "Content-Encoding", "gzip", error);
}

struct upload_client *upload_client_open(const struct upload_target *target, struct base_error *error)
{
    struct upload_client *client = calloc(1, sizeof *client);
    if (!client) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
        return NULL;
    }
    client->target = target;
    client->curl = shelf_curl(error);
    client->request = client->curl ? client->curl->easy_init() : NULL;
    if (client->curl && !client->request)
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    if (client->request && take_url(client, error) == 0 && take_form(client, error) == 0 &&
        (!target->token_file || take_token(client, error) == 0) &&
        (!target->header_file || take_headers(client, error) == 0))
        return client;
    upload_client_close(client);
    return NULL;
}

void upload_client_close(struct upload_client *client)
{
    if (!client)
        return;
    if (client->curl) {
        client->curl->easy_cleanup(client->request);
        client->curl->slist_free_all(client->headers);
    }
    free(client->url);
    free(client);
}

// ---- one request

struct answering {
    struct upload_answer *answer;
    size_t all_bytes;
};

static size_t take_part(char *part, size_t unit, size_t count, void *context)
{
    struct answering *answering = context;
    struct upload_answer *answer = answering->answer;
    const size_t size = unit * count, room = sizeof answer->body - answer->body_bytes;
    answering->all_bytes += size;
    memcpy(answer->body + answer->body_bytes, part, size < room ? size : room);
    answer->body_bytes += size < room ? size : room;
    return answering->all_bytes > ANSWER_MAX_BYTES ? 0 : size;
}

static size_t take_header(char *line, size_t unit, size_t count, void *context)
{
    static const char name[] = "retry-after:";
    struct upload_answer *answer = ((struct answering *)context)->answer;
    size_t size = unit * count, at = sizeof name - 1;
    if (size < at || strncasecmp(line, name, at) != 0)
        return unit * count;
    while (size > at && strchr("\r\n \t", line[size - 1]))
        size--;
    while (at < size && strchr(" \t", line[at]))
        at++;
    if (size - at < sizeof answer->retry_after)
        snprintf(answer->retry_after, sizeof answer->retry_after, "%.*s", (int)(size - at), line + at);
    return unit * count;
}

// "{id}" becomes the request's: free(). NULL: no memory.
static char *url_of(const struct upload_client *client, const struct upload_item *item)
{
    const char *mark = strstr(client->url, id_mark);
    char *url = NULL;
    if (!mark)
        return strdup(client->url);
    return asprintf(&url, "%.*s%s%s", (int)(mark - client->url), client->url, item->id, mark + sizeof id_mark - 1) < 0
               ? NULL
               : url;
}

static bool is_broken(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: // of what answers and is no HTTP
    case CURLE_WRITE_ERROR:          // an answer longer than answers may be: as if it had not come
        return true;
    default: return false;
    }
}

static void set_options(const struct upload_client *client, const char *url, FILE *body, uint64_t bytes,
                        struct answering *answering)
{
    const struct shelf_curl *curl = client->curl;
    CURL *request = client->request;
    const struct upload_target *target = client->target;
    curl->easy_reset(request);
    curl->easy_setopt(request, CURLOPT_URL, url);
    curl->easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(request, CURLOPT_TIMEOUT_MS, (long)target->timeout_ms);
    curl->easy_setopt(request, CURLOPT_CONNECTTIMEOUT_MS, (long)target->timeout_ms);
    curl->easy_setopt(request, CURLOPT_USERAGENT, "qut/" QUT_VERSION);
    curl->easy_setopt(request, CURLOPT_WRITEFUNCTION, take_part);
    curl->easy_setopt(request, CURLOPT_WRITEDATA, answering);
    curl->easy_setopt(request, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(request, CURLOPT_HEADERDATA, answering);
    curl->easy_setopt(request, CURLOPT_READDATA, body);
    if (target->certificates)
        curl->easy_setopt(request, CURLOPT_CAINFO, target->certificates);
    if (target->form == UPLOAD_FILE) {
        curl->easy_setopt(request, CURLOPT_UPLOAD, 1L);
        curl->easy_setopt(request, CURLOPT_INFILESIZE_LARGE, (curl_off_t)bytes);
    } else {
        curl->easy_setopt(request, CURLOPT_POST, 1L);
        curl->easy_setopt(request, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes);
    }
}

int upload_client_send(struct upload_client *client, const struct upload_item *item, const char *path,
                       struct upload_answer *answer, struct base_error *error)
{
    struct answering answering = {.answer = answer};
    FILE *body = fopen(path, "re");
    if (!body)
        return base_fail_errno(error, errno);
    char *url = url_of(client, item);
    if (!url) {
        fclose(body);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    }
    char key[sizeof "Idempotency-Key: " + UPLOAD_ID_CHARS];
    snprintf(key, sizeof key, "Idempotency-Key: %s", item->id);
    struct curl_slist headers = {.data = key, .next = client->headers}; // the same for each try
    set_options(client, url, body, item->bytes, &answering);
    client->curl->easy_setopt(client->request, CURLOPT_HTTPHEADER, &headers);
    const CURLcode code = client->curl->easy_perform(client->request);
    client->curl->easy_getinfo(client->request, CURLINFO_RESPONSE_CODE, &answer->status);
    fclose(body);
    free(url);
    if (code == CURLE_OK)
        return 0;
    if (!is_broken(code))
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", client->curl->easy_strerror(code));
    // A refusal that broke off is one: some servers do not read what they refuse to its end.
    answer->is_broken = answer->status < 400;
    snprintf(answer->why, sizeof answer->why, "%s", client->curl->easy_strerror(code));
    return 0;
}
