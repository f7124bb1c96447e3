// SPDX-License-Identifier: Apache-2.0
// A function's name where there is no room for all of it: arguments of templates and of functions go first, the
// innermost ones before those around them, then the middle. What tells two names apart is mostly at their ends.
#ifndef TRACER_NAMES_SHORT_NAME_H
#define TRACER_NAMES_SHORT_NAME_H

#include <stddef.h>

// Into text, of size bytes (at least 4 * columns + 8): "std::map<…>::operator[](…)"; where that is still wider than
// columns, "std::very_lo…f_it". Characters of UTF-8 stay whole. Columns: at least 3. Returns text.
char *names_shorten(const char *name, size_t columns, char *text, size_t size);

#endif
