// SPDX-License-Identifier: Apache-2.0
// What a trace has of a function with a number: from this process's own samples, and from those of others.
#ifndef QUT_FUNCTIONS_TEXT_H
#define QUT_FUNCTIONS_TEXT_H

#include <stddef.h>

enum { FUNCTIONS_TEXT_BYTES = 512 };
// "function\nfile" (QUT_TRACE_MODULE_LINES). A path that does not fit is known by its end. Signal-safe.
void functions_text(const char *name, const char *file, char *text, size_t text_size);

#endif
