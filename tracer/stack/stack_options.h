// SPDX-License-Identifier: Apache-2.0
// What `qut stack` was asked to do.
#ifndef TRACER_STACK_STACK_OPTIONS_H
#define TRACER_STACK_STACK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tracer/elsewhere/elsewhere.h"

struct stack_options {
    int pid;              // one of pid,
    const char *core;     // ... core
    const char *exe;      // (with it, or NULL)
    const char *snapshot; // ... and snapshot
    int tid;              // 0: all threads
    size_t limit;         // frames of a thread
    bool no_stop, interrupt, together, no_names, raw_names, group;
    bool json, quiet, verbose;
    const char *debug_root; // NULL: no separate debug files
    const char *sysroot;
    const char *cache; // NULL: the usual place
    bool no_cache;
    // Servers for what is not at hand: of tables, and of files.
    const char *urls[ELSEWHERE_URLS_MAX];
    size_t url_count;
    const char *key;
    bool is_unsigned, debuginfod;
};

// Returns CLI_GO_ON, or the enum cli_status to exit with.
int stack_options_parse(struct stack_options *options, int argc, char **argv);

#endif
