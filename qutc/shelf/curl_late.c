// SPDX-License-Identifier: Apache-2.0
#include "qutc/shelf/curl_late.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "base/late.h"

static const struct base_late_function functions[] = {
    {"curl_easy_init", offsetof(struct shelf_curl, easy_init)},
    {"curl_easy_reset", offsetof(struct shelf_curl, easy_reset)},
    {"curl_easy_setopt", offsetof(struct shelf_curl, easy_setopt)},
    {"curl_easy_perform", offsetof(struct shelf_curl, easy_perform)},
    {"curl_easy_getinfo", offsetof(struct shelf_curl, easy_getinfo)},
    {"curl_easy_strerror", offsetof(struct shelf_curl, easy_strerror)},
    {"curl_easy_cleanup", offsetof(struct shelf_curl, easy_cleanup)},
    {"curl_slist_append", offsetof(struct shelf_curl, slist_append)},
    {"curl_slist_free_all", offsetof(struct shelf_curl, slist_free_all)},
    {"curl_url", offsetof(struct shelf_curl, url)},
    {"curl_url_set", offsetof(struct shelf_curl, url_set)},
    {"curl_url_get", offsetof(struct shelf_curl, url_get)},
    {"curl_url_cleanup", offsetof(struct shelf_curl, url_cleanup)},
    {"curl_free", offsetof(struct shelf_curl, free)},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static_assert(FUNCTIONS * sizeof(void *) == sizeof(struct shelf_curl), "each is looked up");

static struct shelf_curl curl;
static struct base_error failure;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    base_late_load("libcurl", "libcurl.so.4", functions, FUNCTIONS, &curl, &failure);
}

const struct shelf_curl *shelf_curl(struct base_error *error)
{
    pthread_once(&once, load);
    if (failure.reason != BASE_OK)
        base_fail_as(error, &failure);
    return failure.reason == BASE_OK ? &curl : NULL;
}
