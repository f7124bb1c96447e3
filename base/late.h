// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded when they are first needed: what they bring takes longer to load than everything else of a
// command that does not need it, and one that nothing else depends on may be missing.
#ifndef BASE_LATE_H
#define BASE_LATE_H

#include <stddef.h>

#include "base/error.h"

struct base_late_function {
    const char *name;
    size_t offset; // of the pointer to it in a structure that has nothing but such pointers
};

// Fills the structure, and returns 0; the library stays loaded. -1: it is not installed, or lacks a function. `what`:
// how an error calls it. [blocking; allocating; any thread]
int base_late_load(const char *what, const char *library, const struct base_late_function *functions, size_t count,
                   void *pointers, struct base_error *error);

#endif
