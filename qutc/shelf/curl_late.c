// SPDX-License-Identifier: Apache-2.0
#include "qutc/shelf/curl_late.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char library_name[] = "libcurl.so.4";

// ISO C knows no way from void * to a function but through memory.
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
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
static bool is_there;
static char why[160];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    size_t found = 0;
    while (library && found < FUNCTIONS) {
        void *function = dlsym(library, functions[found].name);
        if (!function)
            break;
        memcpy((char *)&curl + functions[found++].offset, &function, sizeof function);
    }
    is_there = found == FUNCTIONS;
    const char *said = is_there ? NULL : dlerror();
    snprintf(why, sizeof why, "%s", said ? said : library_name);
}

const struct shelf_curl *shelf_curl(struct base_error *error)
{
    pthread_once(&once, load);
    if (!is_there)
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "libcurl cannot be loaded: %s", why);
    return is_there ? &curl : NULL;
}
