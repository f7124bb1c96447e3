// SPDX-License-Identifier: Apache-2.0
// Formats of printf, as scripts have them: %d %i %u %x %X %c %s %%, with flags, a width of at most three digits, and
// any number of "l", which mean nothing: numbers have 64 bits.
#ifndef TRACER_PROBE_FORMAT_H
#define TRACER_PROBE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

struct probe_conversion {
    char flags[8]; // with the width
    char kind;     // 0: it is none that there is
};

// The next conversion from `at` on. *plain characters stand before it ("%%" is left there). NULL: there is none; else
// what follows it.
const char *probe_format_next(const char *at, size_t *plain, struct probe_conversion *conversion);

#endif
