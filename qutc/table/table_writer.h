// SPDX-License-Identifier: Apache-2.0
// A finished draft -> the bytes of a .qut file.
#ifndef QUTC_TABLE_TABLE_WRITER_H
#define QUTC_TABLE_TABLE_WRITER_H

#include "qutc/table/draft.h"

// `header` comes with identity, flags and source sizes filled; the writer adds the rest. *table is malloc'ed.
int table_write(struct table_draft *draft, const struct qut_table_header *header, uint8_t **table, size_t *table_size,
                struct base_error *error);

#endif
