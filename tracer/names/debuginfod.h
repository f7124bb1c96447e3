// SPDX-License-Identifier: Apache-2.0
// Debug files from the servers that $DEBUGINFOD_URLS names, through elfutils' client library where that is installed:
// it is loaded when it is asked for, and nothing depends on it.
#ifndef TRACER_NAMES_DEBUGINFOD_H
#define TRACER_NAMES_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

struct names_debuginfod;

// NULL without memory. A library or servers that are missing are found out by the first question.
struct names_debuginfod *names_debuginfod_open(void);
void names_debuginfod_close(struct names_debuginfod *debuginfod);

enum names_debuginfod_kind { NAMES_DEBUGINFO, NAMES_EXECUTABLE };

// The path, allocated, of the file in the client's cache; NULL: there is none, *why (a static text) says why. Blocks
// for as long as the client's own time limit. Servers that do not answer are not asked again.
char *names_debuginfod_find(struct names_debuginfod *debuginfod, enum names_debuginfod_kind kind,
                            const uint8_t *build_id, size_t build_id_bytes, const char **why);

#endif
