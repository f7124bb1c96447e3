// SPDX-License-Identifier: Apache-2.0
// The columns of pack.h, being filled.
#ifndef TRACER_REPORT_COLUMNS_H
#define TRACER_REPORT_COLUMNS_H

#include "base/interner.h"
#include "tracer/analysis/selection.h"
#include "tracer/names/data_names.h"
#include "tracer/report/bytes.h"
#include "tracer/report/function_tree.h"

enum { COLUMN_COUNT_MAX = 128, COLUMN_NAME_BYTES = 24 };
// Beside enum qut_trace_sample_flag: an interval without an end; processor time that the kernel's own tick tells.
enum { COLUMN_FLAG_OPEN = 128, COLUMN_FLAG_TOLD = 64 };

struct column {
    char name[COLUMN_NAME_BYTES];
    struct bytes bytes;
};

struct columns {
    struct column columns[COLUMN_COUNT_MAX];
    size_t count;
    struct base_interner strings;
    unsigned time_shift;
};

// A new column. It stays where it is.
struct bytes *report_columns_add(struct columns *columns, const char *name);

// How many low bits no time of the trace makes use of.
unsigned report_columns_time_shift(const struct trace *trace);

// 0 for what was before.
uint64_t report_columns_units_since_start(const struct columns *columns, const struct trace *trace, uint64_t time_ns);

void report_columns_of_samples(struct columns *columns, const struct selection *selection,
                               const struct report_frames *frames);
void report_columns_of_metrics(struct columns *columns, const struct trace *trace);
void report_columns_of_extras(struct columns *columns, const struct trace *trace, const struct report_frames *frames,
                              struct names_data *data);
void report_columns_of_marks(struct columns *columns, const struct trace *trace);
void report_columns_of_gaps(struct columns *columns, const struct trace *trace);

#endif
