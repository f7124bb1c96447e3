// SPDX-License-Identifier: Apache-2.0
// Files as profiles have them: with addresses as in the file, and the build-id, who has the file can name what is in
// it, wherever it was loaded.
#ifndef TRACER_EXPORT_PPROF_MAPPINGS_H
#define TRACER_EXPORT_PPROF_MAPPINGS_H

#include "tracer/export/locations.h"

// What of a file's places is known.
struct export_mapping {
    bool functions, lines, inlined;
    uint64_t start, limit; // virtual addresses
};

// Of each module of the trace; the caller's. NULL: no memory.
struct export_mapping *export_mappings_make(const struct trace *trace, const struct names *names,
                                            const struct locations *locations, bool no_names);

// Whether a module is a file, and not code that was made at run time.
bool export_has_mapping(const struct trace *trace, uint32_t module);
// The address of a node's code: in its file, where it has one, else in memory.
uint64_t export_mapping_address(const struct trace *trace, uint32_t node);

enum { EXPORT_BUILD_ID_CHARS = 2 * QUT_TRACE_BUILD_ID_BYTES + 1 };
const char *export_build_id_text(const struct trace_module *module, char text[EXPORT_BUILD_ID_CHARS]);

#endif
