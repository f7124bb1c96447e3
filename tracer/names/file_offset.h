// SPDX-License-Identifier: Apache-2.0
// Where in its file a module's code is: what a virtual address needs to be found by those who know mappings only.
#ifndef TRACER_NAMES_FILE_OFFSET_H
#define TRACER_NAMES_FILE_OFFSET_H

#include "tracer/names/names.h"

// The offset of a virtual address in the module's file, by its program headers. Where that file cannot be had, the
// address itself, which it is in most libraries.
uint64_t names_file_offset(const struct names_options *options, const struct trace_module *module, uint64_t vaddr);

#endif
