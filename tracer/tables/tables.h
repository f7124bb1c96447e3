// SPDX-License-Identifier: Apache-2.0
// A trace as four flat tables: traces (one row), samples, stacks, frames. They are not stored: a cell is made of the
// trace when it is asked for. Whoever joins them does so by `trace` and the number beside it, so that the tables of
// many traces can be put together. That of a stack is the same in all of them.
//
// After tables_make nothing of a `struct tables` changes but by tables_rows_by_stack; none of the rest allocates or
// blocks, so any number of threads may read. All texts live as long as it, and are UTF-8. No function prints.
#ifndef TRACER_TABLES_TABLES_H
#define TRACER_TABLES_TABLES_H

#include "tracer/analysis/labels.h"
#include "tracer/analysis/selection.h"
#include "tracer/names/names.h"

enum tables_table { TABLES_TRACES, TABLES_SAMPLES, TABLES_STACKS, TABLES_FRAMES, TABLES_COUNT };
enum tables_type { TABLES_INT32, TABLES_INT64, TABLES_TEXT };

struct tables_column {
    const char *name;
    enum tables_type type;
    bool in_path;     // Parquet: it is said by the folders' names, and not in the file
    const char *what; // one line, with its unit
};

struct tables_schema {
    const char *name;
    const char *what;
    const struct tables_column *columns;
    unsigned column_count;
};
extern const struct tables_schema tables_schemas[TABLES_COUNT];

// Columns that others need by number. In all tables:
enum { TABLES_TRACE = 0 };
// Of samples, stacks, frames: the number that joins them.
enum { TABLES_STACKS_STACK = 1, TABLES_STACKS_DEPTH = 2, TABLES_FRAMES_FRAME = 1, TABLES_SAMPLES_STACK = 1 };

struct tables_options {
    struct analysis_labels labels;
    struct selection_wanted wanted; // kind SELECTION_ALL: of all kinds
};

struct tables;

// `trace` and `names` live longer than what is made. NULL, *error filled: no memory.
struct tables *tables_make(const struct trace *trace, const struct names *names, const struct tables_options *options,
                           struct base_error *error);
void tables_free(struct tables *tables);

int64_t tables_trace_id(const struct tables *tables); // no two traces have the same; of one it is always the same
const char *tables_date(const struct tables *tables); // of its start, "2026-11-27" (UTC)
const char *tables_service(const struct tables *tables);

uint64_t tables_row_count(const struct tables *tables, enum tables_table table);

// A row, and where the next one is found.
struct tables_row {
    enum tables_table table;
    uint64_t number;        // from 0 on
    uint64_t item;          // of samples and frames: its index
    uint32_t thread;        // samples
    uint32_t stack;         // stacks: index of those that are used
    uint32_t node, inlined; // stacks
    uint32_t depth;
};
// number < tables_row_count.
struct tables_row tables_row_at(const struct tables *tables, enum tables_table table, uint64_t number);
void tables_row_next(const struct tables *tables, struct tables_row *row);

int64_t tables_number(const struct tables *tables, const struct tables_row *row, unsigned column);
// The same of `count` rows from row `first` on, which are there; of many it is faster.
void tables_numbers(const struct tables *tables, enum tables_table table, unsigned column, uint64_t first, size_t count,
                    int64_t *to);
const char *tables_text(const struct tables *tables, const struct tables_row *row, unsigned column);

// Of table stacks: the rows of one stack are together. *count 0: there is no such stack.
uint64_t tables_stack_rows(const struct tables *tables, int64_t stack, uint64_t *count);
// Samples, sorted by stack: the number of row `at` of all in this order. NULL: no memory.
const uint32_t *tables_samples_by_stack(struct tables *tables);
// That row `number` of samples is asked for soon: in another order than its own each is far from the last one.
void tables_prefetch_sample(const struct tables *tables, uint32_t number);

// Writes all of them into DIR/TABLE/date=DATE/service=SERVICE/TRACE.parquet, which replaces what was there of the same
// trace; that of `traces` last, when all others are on the disk. A folder that holds anything else is refused. Returns
// 0, or -1 with *error filled, *at what it is of (of at least PATH_MAX bytes). Allocates, blocks.
int tables_write_folder(const struct tables *tables, const char *folder, char *at, struct base_error *error);
// Whether a folder may be written into: it is not there, is empty, or holds such tables.
int tables_check_folder(const char *folder, struct base_error *error);
// Whether it holds all of them.
int tables_check_written(const char *folder, struct base_error *error);

#endif
