// SPDX-License-Identifier: Apache-2.0
// What is not at hand on this machine, from servers that the user named: tables by build-id (qutc/servers.h), and files
// from debuginfod. A process that is watched never asks: who makes tables beside it does, once the files at hand were
// looked at. No function prints; all may block, for as long as servers take, and allocate. Threads: any, at the same
// time.
#ifndef TRACER_ELSEWHERE_ELSEWHERE_H
#define TRACER_ELSEWHERE_ELSEWHERE_H

#include <stdbool.h>

#include <qutc/provide.h>

#include "base/error.h"
#include "qutc/input/image.h"

enum { ELSEWHERE_URLS_MAX = 16 };

struct elsewhere_options {
    const char *const *urls; // of tables (qutc compile --layout)
    size_t url_count;
    const char *key;             // of those who sign their indexes; NULL: whoever answers is believed
    const char *cache_directory; // signed tables are kept there, and what servers lack; NULL: nothing is
    const char *debug_root;      // separate debug files of what debuginfod gives; NULL: not looked for
    bool debuginfod;             // $DEBUGINFOD_URLS may be asked
};

// What was had from servers.
struct elsewhere_counts {
    unsigned tables, files;
};

// The options' texts are kept, not copied. NULL: *error says why (no memory; a URL is none; no libcurl).
struct elsewhere *elsewhere_open(const struct elsewhere_options *options, struct base_error *error);
void elsewhere_close(struct elsewhere *elsewhere); // NULL: nothing happens
struct elsewhere_counts elsewhere_counts(struct elsewhere *elsewhere);

// A qut_compile_fn, as qutc_provide_options.take has it; `elsewhere` is a struct elsewhere. The reason says what became
// of each kind of server.
int elsewhere_take(void *elsewhere, const struct qut_compile_request *request, void **table, size_t *table_size,
                   char *reason, size_t reason_size);

// A file with the symbols of a build: what debuginfod has as its debug information, else its executable. NULL: there is
// none, or `elsewhere` is NULL. input_image_close.
struct input_image *elsewhere_image(struct elsewhere *elsewhere, const uint8_t *build_id, size_t build_id_bytes);

#endif
