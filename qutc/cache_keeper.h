// SPDX-License-Identifier: Apache-2.0
// Looks after a cache: one at a time, by a lock file; knows what is in it, drops what is stale, keeps what is needed.
// Others may add tables meanwhile, and read all of them.
#ifndef QUTC_CACHE_KEEPER_H
#define QUTC_CACHE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

enum { QUTC_SUSPECTS_MAX = 16 };

struct qutc_kept {
    char *name;
    uint64_t bytes;
    int64_t used_ns; // when it was made, or last needed
    bool is_needed;  // by this run
};

struct qutc_keeper {
    int directory_fd, lock_fd; // -1: none
    BASE_VECTOR(struct qutc_kept) tables;
    uint64_t bytes;
    uint64_t dropped, dropped_bytes;
    char *suspects[QUTC_SUSPECTS_MAX]; // files that earlier runs died at
    unsigned suspect_count;
};

// Creates the directory where it is missing, takes the lock, lists the tables, removes what writers that are gone left
// half-written. *is_busy (and -1): another one has the lock.
int qutc_keeper_open(struct qutc_keeper *keeper, const char *directory, bool *is_busy, struct base_error *error);
void qutc_keeper_close(struct qutc_keeper *keeper);

// Drops the tables that were not used since then and are not needed.
void qutc_keeper_drop_older(struct qutc_keeper *keeper, int64_t used_ns);
// Drops tables that are not needed, the oldest first, until `more` bytes fit into the budget. False: they do not.
bool qutc_keeper_make_room(struct qutc_keeper *keeper, uint64_t more_bytes, uint64_t budget_bytes);
// This run needs the table, which is there: it stays, and counts as used now. -1 for want of memory.
int qutc_keeper_need(struct qutc_keeper *keeper, const char *name, struct base_error *error);

// Remembers, in the lock file, what is worked on: where the run dies, the next one knows it by that. NULL: nothing.
void qutc_keeper_works_on(struct qutc_keeper *keeper, const char *name);
void qutc_keeper_did(struct qutc_keeper *keeper, const char *name); // and lives
bool qutc_keeper_suspects(const struct qutc_keeper *keeper, const char *name);

#endif
