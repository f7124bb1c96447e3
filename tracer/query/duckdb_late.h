// SPDX-License-Identifier: Apache-2.0
// DuckDB's C interface, of a library that is loaded where it is asked for: no distribution of ours has it, and nothing
// depends on it. Only what has been the same since DuckDB 1.0.
#ifndef TRACER_QUERY_DUCKDB_LATE_H
#define TRACER_QUERY_DUCKDB_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct duckdb_handle; // what its handles point to is its own

struct duckdb_result {
    uint64_t deprecated_counts[3];
    void *deprecated[2];
    void *internal;
};

enum { DUCKDB_DONE = 0, DUCKDB_SELECT = 1 };
enum duckdb_type {
    DUCKDB_BOOLEAN = 1,
    DUCKDB_BIGINT = 5,
    DUCKDB_UBIGINT = 9,
    DUCKDB_FLOAT = 10,
    DUCKDB_DOUBLE = 11,
    DUCKDB_HUGEINT = 16,
    DUCKDB_DECIMAL = 19,
    DUCKDB_UHUGEINT = 32,
};

// Its functions, without the duckdb_ of their names.
struct duckdb_functions {
    int (*open)(const char *path, struct duckdb_handle **database);
    void (*close)(struct duckdb_handle **database);
    int (*connect)(struct duckdb_handle *database, struct duckdb_handle **connection);
    void (*disconnect)(struct duckdb_handle **connection);
    int (*query)(struct duckdb_handle *connection, const char *sql, struct duckdb_result *result);
    int (*prepare)(struct duckdb_handle *connection, const char *sql, struct duckdb_handle **statement);
    const char *(*prepare_error)(struct duckdb_handle *statement);
    int (*prepared_statement_type)(struct duckdb_handle *statement);
    int (*execute_prepared)(struct duckdb_handle *statement, struct duckdb_result *result);
    void (*destroy_prepare)(struct duckdb_handle **statement);
    const char *(*result_error)(struct duckdb_result *result);
    void (*destroy_result)(struct duckdb_result *result);
    uint64_t (*column_count)(struct duckdb_result *result);
    const char *(*column_name)(struct duckdb_result *result, uint64_t column);
    int (*column_type)(struct duckdb_result *result, uint64_t column);
    uint64_t (*row_count)(struct duckdb_result *result);
    bool (*value_is_null)(struct duckdb_result *result, uint64_t column, uint64_t row);
    int64_t (*value_int64)(struct duckdb_result *result, uint64_t column, uint64_t row);
    double (*value_double)(struct duckdb_result *result, uint64_t column, uint64_t row);
    char *(*value_varchar)(struct duckdb_result *result, uint64_t column, uint64_t row);
    void (*free)(void *memory);
};

// NULL, *error filled: it is not installed, or lacks a function. $QUT_DUCKDB, or else libduckdb.so. Stays loaded.
// [blocking; allocating; one thread]
const struct duckdb_functions *duckdb_late(struct base_error *error);

#endif
