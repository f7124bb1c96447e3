// SPDX-License-Identifier: Apache-2.0
// Code space: 2^35 bytes in which each module that this process ever loaded has its place, the same each time that it
// is loaded. So a byte of code has one number, wherever the loader puts it.
#ifndef QUT_MODULES_CODE_SPACE_H
#define QUT_MODULES_CODE_SPACE_H

#include "libqut/modules/registry.h"

enum { MODULES_CODE_SPACE_BITS = 35, MODULES_CODE_SPACE_FIRST = 4096, MODULES_CODE_SPACE_ALIGNMENT = 16 };

// Where the module's first byte of code has its place; 0: there is no room, or no memory. Under lock, or work.
uint64_t modules_code_space_of(const struct modules_identity *identity, const char *name);

#endif
