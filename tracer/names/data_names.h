// SPDX-License-Identifier: Apache-2.0
// Names of data: what a lock's address is, by the symbols of the module whose segment it lies in. What is in no module
// (on a heap, on a stack) has no name.
#ifndef TRACER_NAMES_DATA_NAMES_H
#define TRACER_NAMES_DATA_NAMES_H

#include "tracer/names/names.h"

struct names_data;

enum { NAMES_DATA_TEXT_BYTES = 128 };

// NULL: no memory. Files are opened when an address in them is asked for, found as those of `names` were. The trace,
// and the texts in the options of `names`, must outlive it.
struct names_data *names_data_open(const struct trace *trace, const struct names *names);
void names_data_close(struct names_data *data);

// "global_lock", "table+0x28"; of data without a symbol "libc.so.6+0x21ac80", by its virtual address; else "".
// `process` is an index in the trace's processes: where modules were is known of the first one alone. Returns the text.
const char *names_data_at(struct names_data *data, uint32_t process, uint64_t address,
                          char text[NAMES_DATA_TEXT_BYTES]);
// Whether memory was short, so that names may be missing.
bool names_data_no_memory(const struct names_data *data);

#endif
