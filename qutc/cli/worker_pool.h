// SPDX-License-Identifier: Apache-2.0
// Work spread over forked processes: a worker that dies on a hostile input costs that input, nothing else.
#ifndef QUTC_CLI_WORKER_POOL_H
#define QUTC_CLI_WORKER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_TALLY_NUMBERS = 8 };

// What one piece of work came to, besides its text. The numbers mean what the command says.
struct cli_tally {
    int outcome; // enum cli_outcome
    uint64_t numbers[CLI_TALLY_NUMBERS];
};

struct cli_pool_result {
    size_t index;
    char *output, *errors; // NUL-terminated
    struct cli_tally tally;
    bool has_died; // no output, no tally; `death` says how
    char death[48];
};

struct cli_pool {
    size_t count; // of pieces of work
    unsigned jobs;
    const size_t *order; // in which they are begun, each index once; NULL: as they are numbered
    void *context;
    // In a worker.
    void (*work)(void *context, size_t index, FILE *output, FILE *errors, struct cli_tally *tally);
    // In the caller, in the order of indexes. False stops everything.
    bool (*take)(void *context, const struct cli_pool_result *result);
    // In the caller, whenever a piece is done.
    void (*step)(void *context, size_t done, size_t index);
};

// 0, or -1 with errno where no worker could be started. Flushes standard output before it forks.
int cli_pool_run(const struct cli_pool *pool);

#endif
