// SPDX-License-Identifier: Apache-2.0
// Probes in place of events: functions run programs of an image, in a memory that all traced processes and the tool
// share (formats/qut_probe_live.h). Owned by who makes it, and longer there than any process is traced.
#ifndef TRACER_TRACED_PROBE_H
#define TRACER_TRACED_PROBE_H

#include <pthread.h>
#include <stdint.h>

#include "tracer/traced/traced.h"

// A function about which a script has asked while it was compiled: what it says of arguments is so there, and need not
// be in a function of another file that happens to have the same name.
struct traced_asked {
    uint32_t pattern; // of the options
    uint32_t zero;
    uint8_t identity[QUT_PLAN_IDENTITY_MAX]; // of its file, and
    uint64_t file_bytes, plan_checksum;
    uint64_t entry_vaddr;
};
struct qut_plan_header;
struct traced_asked traced_asked_make(uint32_t pattern, const struct qut_plan_header *file, uint64_t entry_vaddr);
void traced_asked_sort(struct traced_asked *asked, size_t count);

// Places within the functions of a pattern, so many bytes behind their entries; or where the code of a line begins, in
// all functions and inlined copies of them.
struct traced_place {
    const char *pattern; // of a line: all functions of its module, or of all
    uint64_t offset_bytes;
    const char *file; // how it ends; NULL: no line is meant
    uint32_t line;
    uint32_t programs; // bits
};

struct qut_probe_live;
struct traced_probe {
    int memory_fd;
    const struct qut_probe_live *live;           // its beginning
    uint32_t programs[TRACED_PATTERNS_MAX];      // of functions that a pattern of the options fits, bits
    const char *callers[QUT_PROBE_PROGRAMS_MAX]; // by program: [MODULE!]GLOB that it is called out of; NULL: anything
    uint32_t asking_programs;                    // those that run in functions that were asked about only, bits
    const struct traced_asked *asked;            // sorted
    size_t asked_count;
    const struct traced_place *places;
    size_t place_count;
    bool tells_calls; // events are written as well, where programs run at entries and exits
    pthread_mutex_t lock;
    uint64_t end_bytes; // of the memory, with all masks so far
};

#endif
