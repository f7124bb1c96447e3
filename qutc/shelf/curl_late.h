// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded when it is first needed. It brings 28 libraries, which take longer to load than everything else of a
// command that asks no server.
#ifndef QUTC_SHELF_CURL_LATE_H
#define QUTC_SHELF_CURL_LATE_H

#include <curl/curl.h>

#include "base/error.h"

// Its functions, without the curl_ of their names.
struct shelf_curl {
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_url) *url;
    __typeof__(curl_url_set) *url_set;
    __typeof__(curl_url_get) *url_get;
    __typeof__(curl_url_cleanup) *url_cleanup;
    __typeof__(curl_free) *free;
};

// NULL, *error filled: it is not installed, or lacks a function. Stays loaded. [blocking; allocating; any thread]
const struct shelf_curl *shelf_curl(struct base_error *error);

#endif
