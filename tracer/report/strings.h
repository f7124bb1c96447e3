// SPDX-License-Identifier: Apache-2.0
// Strings, each once, with numbers from 0 on: 0 is the empty one.
#ifndef TRACER_REPORT_STRINGS_H
#define TRACER_REPORT_STRINGS_H

#include "tracer/report/bytes.h"

struct report_strings {
    const char **texts; // not copied: they outlive this
    size_t count;
    uint32_t *slots; // index + 1; 0: free
    size_t capacity; // of slots, a power of two; of texts: half of it
    bool has_failed;
};

// NULL is the empty string. Without memory: 0, and has_failed.
uint32_t report_strings_add(struct report_strings *strings, const char *text);
void report_strings_free(struct report_strings *strings);

#endif
