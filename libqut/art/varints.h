// SPDX-License-Identifier: Apache-2.0
// Numbers as ART's CodeInfo begins with: 4 bits each, of which 0 ... 11 are the number, and 12 ... 15 say that it
// follows in 1 ... 4 bytes. `interleaved`: behind all the 4 bits, else behind its own.
#ifndef QUT_ART_VARINTS_H
#define QUT_ART_VARINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False: they do not end within `size` bytes. Signal-safe.
bool art_read_varints(const uint8_t *bytes, size_t size, bool interleaved, uint32_t *values, unsigned count);

#endif
