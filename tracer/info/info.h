// SPDX-License-Identifier: Apache-2.0
// What is in a trace, summed up once for both ways to print it.
#ifndef TRACER_INFO_INFO_H
#define TRACER_INFO_INFO_H

#include <stdio.h>

#include "base/json.h"
#include "tracer/export/quality.h"
#include "tracer/info/info_tables.h"
#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

enum { INFO_KINDS = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT };

struct info {
    const struct trace *trace;
    uint64_t kinds[INFO_KINDS]; // samples, with those that were merged
    uint64_t unknown_kinds;
    uint64_t lost;     // all reasons
    uint64_t marks[4]; // by kind
    uint64_t frames[QUT_TRACE_CLASS_COUNT];
    double seconds;
    double record_bytes_per_sample; // in memory
    double file_bytes_per_sample;   // 0: it is a segment
    bool is_segment;
    // What is asked for beside; names NULL: nothing that needs them.
    const struct info_wanted *wanted;
    const struct names *names;
    const struct selection *selection; // with names: what the tables are of
    const struct quality *quality;     // with names
    const char *parts; // the folder that an interrupted recording left beside the file; NULL: there is none
};

struct info info_of(const struct trace *trace, bool is_segment);
// -1: no memory, and not all was printed. JSON has a member "error" then, and is JSON.
int info_print_text(const struct info *info, FILE *output);
int info_print_json(const struct info *info, FILE *output);

// info_processes.c: processes, where there are several, and what was noted beside the samples.
void info_processes_text(const struct info *info, FILE *output);
void info_processes_json(const struct info *info, struct base_json *json);

const char *info_arch_name(unsigned arch);
const char *info_class_name(unsigned class_);
const char *info_mark_kind_name(unsigned kind);

#endif
