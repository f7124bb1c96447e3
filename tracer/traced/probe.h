// SPDX-License-Identifier: Apache-2.0
// Probes in place of events: functions run programs of an image, in a memory that all traced processes and the tool
// share (formats/qut_probe_live.h). Owned by who makes it, and longer there than any process is traced.
#ifndef TRACER_TRACED_PROBE_H
#define TRACER_TRACED_PROBE_H

#include <pthread.h>
#include <stdint.h>

#include "tracer/traced/traced.h"

struct traced_probe {
    int memory_fd;
    uint32_t programs[TRACED_PATTERNS_MAX]; // of functions that a pattern of the options fits, bits
    pthread_mutex_t lock;
    uint64_t end_bytes; // of the memory, with all masks so far
};

#endif
