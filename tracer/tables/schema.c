// SPDX-License-Identifier: Apache-2.0
// What the tables' columns are called, and mean. cells.c has the same order.
#include "tracer/tables/tables.h"

#define TRACE_COLUMN                                                                                                   \
    {                                                                                                                  \
        "trace", TABLES_INT64, false, "the trace's number: the same in all four tables"                                \
    }
#define PATH_COLUMNS                                                                                                   \
    {"date", TABLES_TEXT, true, "day of the trace's start, UTC: 2026-11-27"},                                          \
    {                                                                                                                  \
        "service", TABLES_TEXT, true, "label; else the program's name"                                                 \
    }

static const struct tables_column traces[] = {
    TRACE_COLUMN,
    {"host", TABLES_TEXT, false, "label; else empty"},
    {"version", TABLES_TEXT, false, "label; else the program's build-id"},
    {"file", TABLES_TEXT, false, "the trace's path, as it was given"},
    {"pid", TABLES_INT32, false, "of the first process"},
    {"command", TABLES_TEXT, false, "command line of the first process"},
    {"arch", TABLES_TEXT, false, "machine of the code"},
    {"kind", TABLES_TEXT, false, "what it was taken for: cpu, wall, ..."},
    {"start_ns", TABLES_INT64, false, "Unix time in ns"},
    {"end_ns", TABLES_INT64, false, "Unix time in ns"},
    {"monotonic_ns", TABLES_INT64, false, "CLOCK_MONOTONIC at start_ns"},
    {"complete", TABLES_INT32, false, "1: closed in an orderly way, and all of it is here"},
    {"hits", TABLES_INT64, false, "= stored + merged + throttled + lost + under_way"},
    {"stored", TABLES_INT64, false, "samples that became records"},
    {"merged", TABLES_INT64, false, "samples that were added to an equal one before"},
    {"throttled", TABLES_INT64, false, "samples that were not taken, to keep within the rate"},
    {"lost", TABLES_INT64, false, "samples that could not be kept"},
    {"under_way", TABLES_INT64, false, "samples that were being written when the trace was taken"},
    {"present_samples", TABLES_INT64, false,
     "samples that are here; stored + merged = present + overwritten + damaged"},
    {"overwritten_samples", TABLES_INT64, false, "samples that newer ones took the place of"},
    {"damaged_samples", TABLES_INT64, false, "samples that cannot be read"},
    {"records", TABLES_INT64, false, "records that are here"},
    PATH_COLUMNS,
};

static const struct tables_column samples[] = {
    TRACE_COLUMN,
    {"stack", TABLES_INT64, false, "its stack, in table stacks, the same number in all traces; 0: none"},
    {"pid", TABLES_INT32, false, "process"},
    {"tid", TABLES_INT32, false, "thread"},
    {"thread", TABLES_TEXT, false, "the thread's name"},
    {"time_ns", TABLES_INT64, false, "Unix time in ns; of several the first"},
    {"span_ns", TABLES_INT64, false, "from the first to the last of them"},
    {"kind", TABLES_TEXT, false, "cpu, wall, alloc, lock, io, other: as --kind"},
    {"event", TABLES_TEXT, false, "of a kind: lock, wait, wake, read, poll, ..."},
    {"count", TABLES_INT64, false, "samples that this row stands for; 0: only time that no sample met"},
    {"cpu_ns", TABLES_INT64, false, "processor time"},
    {"wall_ns", TABLES_INT64, false, "time until the next sample of its thread"},
    {"blocked_ns", TABLES_INT64, false, "time off the processor"},
    {"bytes", TABLES_INT64, false, "allocated, estimated"},
    {"allocations", TABLES_INT64, false, "likewise"},
    {"faults", TABLES_INT64, false, "of pages"},
    {"duration_ns", TABLES_INT64, false, "of the wait or call that ended here; 0: none did"},
    {"lock", TABLES_INT64, false, "address of the lock; 0: none"},
    {"owner_tid", TABLES_INT32, false, "the lock's holder when the wait began; 0: not known"},
    {"waker_tid", TABLES_INT32, false, "the thread that ended the wait; 0: not known"},
    {"flow", TABLES_INT64, false, "the same in a cause and its effect, as release and end of a wait; 0: none"},
    {"size", TABLES_INT64, false, "bytes of the one allocation or transfer; 0: not known"},
    {"fd", TABLES_INT32, false, "descriptor; -1: none"},
    {"begins", TABLES_INT32, false, "1: a wait or a call begins here"},
    {"open", TABLES_INT32, false, "1: likewise, and its end is not in the trace"},
    {"cut", TABLES_INT32, false, "1: frames are missing"},
    {"own", TABLES_INT32, false, "1: met qut's own work in the program's thread"},
    PATH_COLUMNS,
};

static const struct tables_column stacks[] = {
    TRACE_COLUMN,
    {"stack", TABLES_INT64, false, "as in samples"},
    {"depth", TABLES_INT32, false, "0: innermost"},
    {"frame", TABLES_INT32, false, "in table frames"},
    {"repeated", TABLES_INT32, false, "1: the same function stands further out, too: sum rows of 0 for totals"},
    PATH_COLUMNS,
};

static const struct tables_column frames[] = {
    TRACE_COLUMN,
    {"frame", TABLES_INT32, false, "as in stacks"},
    {"function", TABLES_TEXT, false, "its name; without one module+0xaddress"},
    {"module", TABLES_TEXT, false, "the file's name without folders; empty: none"},
    {"path", TABLES_TEXT, false, "the file"},
    {"build_id", TABLES_TEXT, false, "of the file, in hex"},
    {"address", TABLES_INT64, false, "virtual address in the file; without one in memory"},
    {"type", TABLES_TEXT, false, "code, signal, address, jit, dex, label, end, kernel"},
    {"source", TABLES_TEXT, false, "source file, where it was asked for"},
    {"line", TABLES_INT32, false, "0: not known"},
    {"inlined", TABLES_INT32, false, "1: into the next frame of the stack"},
    {"known", TABLES_INT32, false, "0: function is only an address"},
    PATH_COLUMNS,
};

#define COUNT(columns) (sizeof(columns) / sizeof *(columns))

const struct tables_schema tables_schemas[TABLES_COUNT] = {
    [TABLES_TRACES] = {"traces", "a row for each trace: what it is of, and what was lost", traces, COUNT(traces)},
    [TABLES_SAMPLES] = {"samples", "a row for each sample, or for equal ones in a row", samples, COUNT(samples)},
    [TABLES_STACKS] = {"stacks", "a row for each frame of each different stack", stacks, COUNT(stacks)},
    [TABLES_FRAMES] = {"frames", "a row for each different place in code", frames, COUNT(frames)},
};
