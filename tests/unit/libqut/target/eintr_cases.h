// SPDX-License-Identifier: Apache-2.0
// Ways to sleep for ever in the kernel, each a function for a thread.
#ifndef TESTS_UNIT_LIBQUT_TARGET_EINTR_CASES_H
#define TESTS_UNIT_LIBQUT_TARGET_EINTR_CASES_H

#include <stdbool.h>

struct eintr_case {
    const char *name;
    const char *asleep_in; // what a stop must leave alone, by its name; NULL: it can be stopped
    // Prepares, once; -1: not to be had here. What it returns is for sleep.
    int (*prepare)(void);
    // As the system call: returns what that does, and sets errno. Nothing but an interruption makes it return.
    long (*sleep)(int prepared);
    bool is_mended; // it is stopped, and made to begin anew where the architecture's registers allow that
};

extern const struct eintr_case eintr_cases[];
extern const unsigned eintr_case_count;

#endif
