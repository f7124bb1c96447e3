// SPDX-License-Identifier: Apache-2.0
// A table read from a file into private memory. Never mapped: a file that is cut off under its reader must not kill
// the process.
#ifndef QUTC_TABLE_FILE_H
#define QUTC_TABLE_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "libqut/runtime/table.h"

struct qutc_table_file {
    uint8_t *bytes; // free()
    size_t size;
    struct qut_table table; // points into bytes
};

// Fills *file only where the table passes its checker. Blocks, allocates.
int qutc_table_file_read(const char *path, struct qutc_table_file *file, struct base_error *error);
void qutc_table_file_free(struct qutc_table_file *file);

// Attaches bytes that the caller keeps; a fault becomes an error that names it.
int qutc_table_attach(struct qut_table *table, const void *bytes, size_t size, struct base_error *error);

// The whole of a regular file, at most max_bytes, aligned as tables need it. *bytes is freed by the caller.
int qutc_read_file(const char *path, uint64_t max_bytes, uint8_t **bytes, size_t *size, struct base_error *error);

// Memory aligned as tables need it; free(). NULL where there is none.
void *qutc_alloc_aligned(size_t size);

#endif
