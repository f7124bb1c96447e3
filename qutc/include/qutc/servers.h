// SPDX-License-Identifier: Apache-2.0
// Tables from servers, for the modules of which the files at hand give none. In a library of its own, libqutc-servers,
// which needs libcrypto, and loads libcurl when it is opened. `qutc compile --layout` makes what the servers have.
//
//     struct qutc_servers_options from = {.size = sizeof from, .urls = urls, .url_count = 1, .key = "tables.pem"};
//     if (qutc_servers_open(&from, &servers, reason, sizeof reason) == 0) {
//         provide.take = qutc_servers_take;
//         provide.take_context = servers;
//     }
//
// Nobody is asked but these servers. They learn which builds are asked for. Nothing is printed; no signal is raised.
#ifndef QUTC_SERVERS_H
#define QUTC_SERVERS_H

#include <stddef.h>

#include <qut/compiler.h>

QUT_DECLS_BEGIN

struct qutc_servers_options {
    size_t size;             // sizeof(struct qutc_servers_options)
    const char *const *urls; // http or https, 16 at most: one after the other is asked. Kept, not copied, as all texts
    size_t url_count;
    const char *key;             // PEM file of the key that their indexes are signed with; NULL: whoever answers is
                                 // believed
    const char *cache_directory; // signed tables are kept there for the next process, and for ten minutes what servers
                                 // said of theirs; NULL: nothing is
    unsigned timeout_ms;         // of one request; 0: 2000
};

struct qutc_servers;

// Asks nobody yet. 0; or -1, with `reason`: a URL is none, or this build has no libcurl, or none is installed. [not
// signal-safe, blocks, allocates; any thread]
QUT_API int qutc_servers_open(const struct qutc_servers_options *options, struct qutc_servers **servers, char *reason,
                              size_t reason_size);

// NULL: nothing happens. Not while somebody takes: qut_stop comes first. [not signal-safe, allocates; any thread]
QUT_API void qutc_servers_close(struct qutc_servers *servers);

// A qut_compile_fn for qutc_provide_options.take: `servers` is a struct qutc_servers. A table is taken if an index that
// the key has signed names its SHA-256, it passes its checker and is of request->build_id; where the module's file is
// at hand (QUT_COMPILE_FILE_IS_HERE), if the index names that file's size and SHA-256, too.
//
// Statuses 403, 404 and 410 mean that a server has no such table. A build that no server has is not asked for again; of
// the last 1024 such builds that is known, until qutc_servers_close. A server that let a request wait until its timeout
// is left alone from then on, and so is one that took 20 seconds in all for questions that gave no table; so each costs
// a thread that long, and at most the four requests of one question beyond it. `reason` says what a server gave that
// was refused, and which one is left alone. [not signal-safe, blocks, allocates; any threads]
QUT_API int qutc_servers_take(void *servers, const struct qut_compile_request *request, void **table,
                              size_t *table_size, char *reason, size_t reason_size);

QUT_DECLS_END

#endif
