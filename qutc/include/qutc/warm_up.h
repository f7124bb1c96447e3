// SPDX-License-Identifier: Apache-2.0
// Fills the cache before the first walk: what `qutc warm-up` does, in a process of the caller's own. On a
// phone: at install time or at the first launch, in a process that may be killed at any moment.
//
//     const char *paths[] = {apk, oat_directory};
//     struct qutc_warm_up_options options = {
//         .size = sizeof options, .cache_directory = cache, .paths = paths, .path_count = 2, .cpu_share_percent = 10};
//     qutc_warm_up(&options, &result, reason, sizeof reason);
#ifndef QUTC_WARM_UP_H
#define QUTC_WARM_UP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/base.h>

QUT_DECLS_BEGIN

enum qutc_warm_up_outcome {
    QUTC_WARM_UP_COMPILED = 0,
    QUTC_WARM_UP_KEPT,      // the cache had it
    QUTC_WARM_UP_NO_UNWIND, // no code, or no unwind information: no failure
    QUTC_WARM_UP_TOO_LARGE, // would take more than memory_bytes
    QUTC_WARM_UP_FAILED,
    QUTC_WARM_UP_OUTCOMES,
};

struct qutc_warm_up_step { // what became of one file
    const char *name;      // "base.apk!lib/arm64-v8a/libx.so"
    enum qutc_warm_up_outcome outcome;
    const char *reason; // why there is no table; "" where there is one
    uint64_t table_bytes;
    uint64_t time_ns;
    size_t done, total; // files
};

struct qutc_warm_up_options {
    size_t size; // sizeof(struct qutc_warm_up_options)
    const char
        *cache_directory;   // created where missing; NULL: $QUT_CACHE, $XDG_CACHE_HOME/qut/tables, ~/.cache/qut/tables
    const char *debug_root; // where separate debug files are; NULL: not looked for
    bool small;             // fewer bytes for a slightly slower lookup
    // What to compile, in this order: what the processes have mapped; then the other files. Among either first what
    // each stack goes through: the loader, libc, ART and its boot images. What an earlier run died at comes last.
    const int *pids;
    size_t pid_count;
    const char *const *paths; // ELF and OAT files, APKs, directories
    size_t path_count;
    bool system; // all that the loader's paths and $PATH reach
    // How gently. 0 is no bound, everywhere.
    unsigned cpu_share_percent; // of one processor: after each file sleeps as long as that takes
    uint64_t memory_bytes;      // files whose compiling is expected to take more are left out
    uint64_t budget_bytes;      // what the cache's tables may take: the oldest go; what this run needs stays
    uint64_t max_age_seconds;   // tables that no run has needed for so long go
    // Told of each file when it is done. Anything but 0 ends the run; the next one goes on where it stopped.
    int (*step)(void *context, const struct qutc_warm_up_step *step);
    void *step_context;
    // Tables that the cache has are not read: libqut checks one when it maps it, and asks for another where it is
    // damaged.
    bool trust_cache;
};

struct qutc_warm_up_result {
    uint64_t files;
    uint64_t outcomes[QUTC_WARM_UP_OUTCOMES];
    uint64_t left;           // not looked at: the run was ended, or the budget is used up
    uint64_t unreadable;     // files and directories found inside others
    uint64_t compiled_bytes; // of new tables
    uint64_t cache_bytes;    // of all tables, at the end
    uint64_t dropped, dropped_bytes;
    uint64_t time_ns, cpu_time_ns; // cpu: of the calling thread
};

enum qutc_warm_up_status {
    QUTC_WARM_UP_WHOLE = 0,
    QUTC_WARM_UP_PARTIAL, // some files failed or were left out: see the counts
    QUTC_WARM_UP_BUSY,    // another warm-up fills this cache now; nothing was done
    QUTC_WARM_UP_STUCK,   // nothing could be done, or no more: `reason` says why
};

// May be killed at any moment: tables appear whole or not at all, and the next run does what is left. Works in the
// calling thread, with its priority. *result is filled always. A file that is changed or cut off meanwhile is counted
// as failed and raises no signal. [not signal-safe, blocks, allocates; any threads]
QUT_API enum qutc_warm_up_status qutc_warm_up(const struct qutc_warm_up_options *options,
                                              struct qutc_warm_up_result *result, char *reason, size_t reason_size);

QUT_DECLS_END

#endif
