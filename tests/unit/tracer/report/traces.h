// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_TRACER_REPORT_TRACES_H
#define TESTS_UNIT_TRACER_REPORT_TRACES_H

#include "tracer/trace/trace_data.h"

// "golden", "damaged" (the same, of which a chunk could not be read), "empty", a number of
// records, "noisy-" and that (whose times are as uneven as real ones), "hollow" (nothing lost, much cut and late), or
// "waits". Returns 0, or -1: none of these. For golden_free.
//
// waits: of 3 s, ms since its beginning. Process 100, with threads 100 (server), 101 (worker-a), 102 (worker-b):
//
//   worker-b   waits for lock 0x5000 ten times 5 ms, once 6, each time for worker-a, which lets go of it;
//              begins to sleep at 700, and is not seen again
//   worker-a   waits for that lock three times 2 ms, for worker-b; and for condition 0x6000 from 500 to 550, until
//              server signals it
//   server     polls from 0 to 90, reads from 600 to 2600; allocates 9 MiB in 900 after its first sample, 10 MiB in
//              1000 in all
//
// Process 200, its child, computes from 1000 to 1500, writes until 1600, ends at 1700.
void waits_trace(struct trace *trace);

int make_trace(const char *what, struct trace *trace);

#endif
