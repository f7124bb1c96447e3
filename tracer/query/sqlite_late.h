// SPDX-License-Identifier: Apache-2.0
// SQLite, loaded when it is first needed: its relocations take other commands longer than reading their options.
#ifndef TRACER_QUERY_SQLITE_LATE_H
#define TRACER_QUERY_SQLITE_LATE_H

#include <sqlite3.h>

#include "base/error.h"

// Its functions, without the sqlite3_ of their names.
struct query_sqlite {
    __typeof__(sqlite3_close) *close;
    __typeof__(sqlite3_column_count) *column_count;
    __typeof__(sqlite3_column_double) *column_double;
    __typeof__(sqlite3_column_int64) *column_int64;
    __typeof__(sqlite3_column_name) *column_name;
    __typeof__(sqlite3_column_text) *column_text;
    __typeof__(sqlite3_column_type) *column_type;
    __typeof__(sqlite3_create_module_v2) *create_module_v2;
    __typeof__(sqlite3_declare_vtab) *declare_vtab;
    __typeof__(sqlite3_errcode) *errcode;
    __typeof__(sqlite3_errmsg) *errmsg;
    __typeof__(sqlite3_error_offset) *error_offset;
    __typeof__(sqlite3_exec) *exec;
    __typeof__(sqlite3_finalize) *finalize;
    __typeof__(sqlite3_free) *free;
    __typeof__(sqlite3_malloc) *malloc;
    __typeof__(sqlite3_open_v2) *open_v2;
    __typeof__(sqlite3_prepare_v2) *prepare_v2;
    __typeof__(sqlite3_result_int64) *result_int64;
    __typeof__(sqlite3_result_text) *result_text;
    __typeof__(sqlite3_set_authorizer) *set_authorizer;
    __typeof__(sqlite3_step) *step;
    __typeof__(sqlite3_stricmp) *stricmp;
    __typeof__(sqlite3_value_double) *value_double;
    __typeof__(sqlite3_value_int64) *value_int64;
    __typeof__(sqlite3_value_numeric_type) *value_numeric_type;
};
extern struct query_sqlite query_sqlite;

// 0, or -1: there is none, *error says why. By one thread.
int query_sqlite_load(struct base_error *error);

#endif
