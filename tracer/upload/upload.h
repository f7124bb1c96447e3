// SPDX-License-Identifier: Apache-2.0
// Traces on their way to a receiver: requests made of them, a folder in which these wait (the spool), and what sends
// them. No function prints; all but the first three may block and allocate. Threads: one at a time for each spool.
#ifndef TRACER_UPLOAD_UPLOAD_H
#define TRACER_UPLOAD_UPLOAD_H

#include "base/cursor_inline.h"
#include "tracer/export/export.h"

enum upload_form {
    UPLOAD_OTLP,  // opentelemetry-proto 1.11, POST to /v1development/profiles
    UPLOAD_PPROF, // Pyroscope's push API, POST to /push.v1.PusherService/Push
    UPLOAD_FILE,  // the trace as it is, PUT
    UPLOAD_FORM_COUNT,
};

const char *upload_form_name(enum upload_form form); // "otlp"
bool upload_form_named(const char *name, enum upload_form *form);
bool upload_is_built(void); // something can be sent; what waits can be made and counted without that

// ---- requests

enum { UPLOAD_ID_CHARS = 33, UPLOAD_REASON_CHARS = 24 };

struct upload_request {
    char id[UPLOAD_ID_CHARS]; // 32 hex digits: the same trace, window and choice give the same one
    enum upload_form form;
    uint64_t from_ns, to_ns; // since the trace's start
    struct base_bytes body;  // as the receiver unpacks it
    uint64_t samples;        // of the trace, that are in it; of a file 0
    bool is_too_large;       // and cannot be split any more
};

struct upload_wanted {
    enum upload_form form;
    struct analysis_labels labels;
    enum selection_kind kind;
    bool no_names;
    const char *system_root;       // NULL: none
    uint64_t window;               // its number, where a trace is one of several of the same processes
    uint64_t max_bytes;            // of one body; a longer one becomes two, each of half the time
    uint64_t max_samples;          // the same of its samples, as they are in it: equal ones are one; 0: any
    unsigned halvings;             // of the rate of samples, by a budget: requests say so
    unsigned window_share_percent; // of windows, of which this is one: likewise. 0: all are taken
};

// Called for each request; it lasts until that returns. -1, *error filled: no more.
typedef int upload_each(void *context, const struct upload_request *request, struct base_error *error);

int upload_make(const struct trace *trace, const struct names *names, const struct upload_wanted *wanted,
                upload_each *each, void *context, struct base_error *error);
// Of UPLOAD_FILE: the file's bytes are the body, and the id is theirs.
int upload_make_file(const char *path, upload_each *each, void *context, struct base_error *error);
// Every text and number in a body that comes from the trace, line by line.
void upload_list(const struct upload_request *request, void (*say)(void *context, const char *what, const char *text),
                 void *context);

// ---- the spool

struct upload_reason {
    char text[UPLOAD_REASON_CHARS]; // "status-400"
    uint64_t count;
};
enum { UPLOAD_REASONS_MAX = 48 };

// taken = sent + waiting + dropped, at each instant, whatever ended the process before.
struct upload_balance {
    uint64_t taken, sent, waiting, dropped;
    uint64_t waiting_bytes;
    uint64_t taken_bytes; // since the spool was opened
    uint64_t rejected;    // profiles, of what was sent: the receiver did not want them
    uint64_t split;       // that became two, each of which was taken in its place
    struct upload_reason reasons[UPLOAD_REASONS_MAX];
    size_t reason_count;
};

enum upload_taken { UPLOAD_TAKEN, UPLOAD_WAITS_ALREADY, UPLOAD_SENT_BEFORE, UPLOAD_DROPPED };

// Makes the folder if it is not there, and finishes what a process that ended had begun. NULL, *error filled: another
// process has it, or there is no room for its account.
struct upload_spool *upload_spool_open(const char *folder, uint64_t max_bytes, struct base_error *error);
void upload_spool_close(struct upload_spool *spool);
// On the disk when this returns. The oldest that wait make room for it. -1: it was not taken, nothing has changed.
int upload_spool_take(struct upload_spool *spool, const struct upload_request *request, enum upload_taken *how,
                      struct base_error *error);
// Whether it has had a request: what was dropped, or sent more than 1,024 requests ago, it may have forgotten.
bool upload_spool_knows(struct upload_spool *spool, const char *id);
void upload_spool_balance(const struct upload_spool *spool, struct upload_balance *balance);

// ---- sending

struct upload_target {
    enum upload_form form;
    const char *url;
    const char *token_file, *header_file, *certificates; // NULL: none
    unsigned timeout_ms;                                 // of one request
    unsigned wait_ms;                                    // before a request is sent again, doubled each time
    uint64_t patience_ms;                                // for all of it; 0: each is sent once
    void (*say)(void *context, const char *id, const char *text);
    void *context;
};

// What waits of the target's form, oldest first. 0: all of it has been accepted or refused. 1: what is left waits for
// another time. -1, *error filled: the target cannot be used as it is, and all stays.
int upload_send(struct upload_spool *spool, const struct upload_target *target, struct base_error *error);

#endif
