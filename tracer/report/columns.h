// SPDX-License-Identifier: Apache-2.0
// The columns of pack.h, being filled.
#ifndef TRACER_REPORT_COLUMNS_H
#define TRACER_REPORT_COLUMNS_H

#include "tracer/report/bytes.h"
#include "tracer/report/frames.h"
#include "tracer/report/strings.h"

enum { COLUMN_COUNT_MAX = 64, COLUMN_NAME_BYTES = 24 };

struct column {
    char name[COLUMN_NAME_BYTES];
    struct bytes bytes;
};

struct columns {
    struct column columns[COLUMN_COUNT_MAX];
    size_t count;
    struct report_strings strings;
    unsigned time_shift;
};

// A new column. It stays where it is.
struct bytes *columns_add(struct columns *columns, const char *name);

// How many low bits no time of the trace makes use of.
unsigned columns_time_shift(const struct trace *trace);

void columns_of_samples(struct columns *columns, const struct trace *trace, const struct report_frames *frames);
void columns_of_metrics(struct columns *columns, const struct trace *trace);
void columns_of_extras(struct columns *columns, const struct trace *trace, const struct report_frames *frames);
void columns_of_marks(struct columns *columns, const struct trace *trace);
void columns_of_gaps(struct columns *columns, const struct trace *trace);

#endif
