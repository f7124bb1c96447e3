// SPDX-License-Identifier: Apache-2.0
// From a line of source to the code that was made of it, as debug information tells it. As inlines.h.
#ifndef TRACER_NAMES_LINES_H
#define TRACER_NAMES_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "tracer/names/inlines.h"

struct names_lines {
    BASE_VECTOR(uint64_t);  // addresses: of each function, or inlined copy of one, that has code of the line the first
    bool has_file;          // some code was made of a file that is called so
    uint32_t before, after; // the nearest lines of it that have code; 0: there is none
};

// `file`: as compilers were given it, or how that ends behind a slash. False: no memory. To be freed in either case.
bool names_lines_find(struct names_inlines *inlines, const char *file, uint32_t line, struct names_lines *lines);
void names_lines_free(struct names_lines *lines);

#endif
