// SPDX-License-Identifier: Apache-2.0
// Writes Parquet files of flat tables: every column required, of whole numbers or of text. What engines read
// everywhere: data pages of version 1, dictionaries, deltas, zstd, the least and the largest value of each column and
// row group. The file format: https://github.com/apache/parquet-format
//
// Functions allocate, may block in the sink, and keep nothing: any number of threads may write, each to its own sink.
#ifndef TRACER_PARQUET_PARQUET_H
#define TRACER_PARQUET_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tracer/export/sink/sink.h"

enum parquet_type { PARQUET_INT32, PARQUET_INT64, PARQUET_TEXT };

struct parquet_column {
    const char *name;
    enum parquet_type type;
};

// UTF-8: whoever gives it has seen to that. It lives until parquet_write is back.
struct parquet_text {
    const char *bytes;
    size_t size;
};

struct parquet_source {
    const struct parquet_column *columns;
    size_t column_count;
    uint64_t row_count;
    // The values of `count` rows of a column, from row `first` on. Columns are asked for one after the other, for at
    // most PARQUET_GROUP_ROWS rows at a time. Of INT32: values that fit.
    void (*numbers)(void *context, size_t column, uint64_t first, size_t count, int64_t *to);
    void (*texts)(void *context, size_t column, uint64_t first, size_t count, struct parquet_text *to);
    void *context;
    const char *created_by; // "program version 1.2"
};

enum { PARQUET_GROUP_ROWS = 122880 };

// Returns 0, or -1 with *error filled: no memory, or a build without zstd. Errors of writing are the sink's.
int parquet_write(const struct parquet_source *source, struct sink *sink, struct base_error *error);

#endif
