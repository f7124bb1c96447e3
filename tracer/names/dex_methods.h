// SPDX-License-Identifier: Apache-2.0
// Methods of bytecode, by where it is in a file.
#ifndef TRACER_NAMES_DEX_METHODS_H
#define TRACER_NAMES_DEX_METHODS_H

#include "tracer/names/named_file.h"

// Allocated; NULL: not known, and file->why says why.
char *names_dex_method(struct names_file *file, uint64_t offset_bytes);
void names_dex_free(struct names_dex *dex);

#endif
