// SPDX-License-Identifier: Apache-2.0
// What a sampled program leaves behind: a file with a header and a record for each sample. bench/programs/run reads it.
#ifndef QUT_BENCH_PROGRAMS_RECORDS_H
#define QUT_BENCH_PROGRAMS_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum walker {
    WALKER_TABLE = 0, // libqut, no shortcuts
    WALKER_LINKED,
    WALKER_ALL,
    WALKER_CHASE, // reads where return addresses stood in the walk before, as far as those frames are there
    WALKER_LIBGCC,
    WALKER_COUNT,
};

struct record {
    uint32_t thread;     // from 1, in the order in which they began
    uint32_t cost_ticks; // of the walk
    uint16_t frames;
    uint16_t changed;    // frames that are not frames of the walk before; where that is not known: CHANGED_UNKNOWN
    uint16_t remembered; // of the frames, as struct runtime_tier_counts says
    uint16_t looked_up;
    uint8_t walker;     // enum walker
    uint8_t end_reason; // enum qut_end_reason; libgcc, the chase: OUTERMOST or NOT
    uint8_t is_first;   // of the thread, since walkers were changed: it pays for what the others left
    uint8_t zero;
};

enum { CHANGED_UNKNOWN = UINT16_MAX };

struct records_header {
    uint32_t version;
    uint32_t record_bytes;
    uint32_t header_bytes;
    uint32_t capacity;
    double ns_per_tick;
    uint32_t empty_ticks;   // cost_ticks of a walk that does nothing: the median
    uint32_t without_table; // modules, when sampling began
    _Atomic uint32_t count; // may exceed the capacity: those were lost
    uint32_t zero[7];
};

// The file is mapped and shared: what was written is there however the program ends. False: it cannot be made.
bool records_open(const char *path);
struct records_header *records_header(void);
void records_add(const struct record *record); // signal-safe, any thread

// ns_per_tick and empty_ticks of the header. Takes about 20 ms.
void records_calibrate(void);

#endif
