// SPDX-License-Identifier: Apache-2.0
// Traces in the formats that others read. Each writer gets the whole trace and its names, and a sink for bytes.
#ifndef TRACER_EXPORT_EXPORT_H
#define TRACER_EXPORT_EXPORT_H

#include "tracer/analysis/labels.h"
#include "tracer/analysis/selection.h"
#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

// Where bytes go: buffered; errors are kept and said once, by sink_close.
struct sink;

struct export_options {
    unsigned weight;               // enum export_weight: what a sample counts for, where the format has one number
    bool no_names;                 // pprof: what lies in a file is left for others to name
    const char *system_root;       // pprof: as names have it; NULL: none
    struct analysis_labels labels; // where the format has a place for them
    bool no_slices;                // Perfetto: samples without slices
    unsigned halvings;             // otlp: of the rate, by a budget; it is said
    unsigned window_share_percent; // otlp: of windows, of which this is one; it is said. 0: all are taken
    unsigned tick_parts;           // otlp: times of ticks are whole parts of one, their sums exact; 0: as they are
    void (*progress)(void *context, size_t done, size_t all);
    void *progress_context;
};

enum export_weight { // see tracer/analysis/weights.h
    EXPORT_WEIGHT_SAMPLES = MEASURE_SAMPLES,
    EXPORT_WEIGHT_TIME = MEASURE_WALL,       // ns: from a sample to the next of its thread
    EXPORT_WEIGHT_CPU_TIME = MEASURE_CPU,    // ns
    EXPORT_WEIGHT_BYTES = MEASURE_BYTES,     // allocated
    EXPORT_WEIGHT_BLOCKED = MEASURE_BLOCKED, // ns
    EXPORT_WEIGHT_ALLOCATIONS = MEASURE_ALLOCATIONS,
    EXPORT_WEIGHT_FAULTS = MEASURE_FAULTS,
    EXPORT_WEIGHT_COUNT = MEASURE_COUNT,
};

struct export_format {
    const char *name;      // "perfetto"
    const char *extension; // ".perfetto-trace"
    const char *what;      // one line, for --help: what it holds (which programs read it)
    // Returns 0, or -1 with *error filled (of the trace: what the format cannot say). Write errors are the sink's.
    int (*write)(const struct selection *selection, const struct names *names, const struct export_options *options,
                 struct sink *sink, struct base_error *error);
    unsigned weight;   // enum export_weight: of all kinds, where none is asked for
    bool is_timeline;  // it shows each kind by itself: all of them, where none is asked for
    bool is_binary;    // no text
    bool is_gzip;      // the sink is to be compressed (sink_gzip)
    bool is_folder;    // no `write`: it is a folder of tables, see tracer/tables
    bool has_labels;   // the file may have some
    bool has_no_names; // it can be made without names
};

extern const struct export_format export_perfetto, export_speedscope, export_pprof, export_collapsed, export_nanoscope,
    export_chrome, export_perf_script, export_firefox, export_callgrind, export_replay, export_otlp, export_parquet;

extern const struct export_format *const export_formats[]; // up to a NULL
const struct export_format *export_find(const char *name); // NULL: there is none

#endif
