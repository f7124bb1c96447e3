// SPDX-License-Identifier: Apache-2.0
// What a file's table says, as text to compare with.
#ifndef TESTS_SUPPORT_ROWS_H
#define TESTS_SUPPORT_ROWS_H

#include "libqut/runtime/table.h"
#include "qutc/qutc.h"
#include "tests/support/frame_asm.h"

// A table's rows but for the holes, one a line: `10000-10004 cfa=rsp+8 ra=[cfa-8] fp=same`. Neighbours with one rule
// are one row here. Allocated.
char *rows_text(const struct qut_table *table);

// The rows of an assembled section, by way of an ELF file and its compiled table. Where that fails: `error: ` and why.
// Aborts where the table is refused by its own checker. *stats may be NULL. Allocated.
char *rows_of(const struct frame_asm *a, struct qutc_compile_stats *stats);

// The same with --small.
char *small_rows_of(const struct frame_asm *a);

// One FDE over [0, 0x40) of the text with this program.
char *rows_of_program(const struct arch *arch, const uint8_t *program, size_t size);

// Compiles an image, attaches, visits every row; aborts where the table does not hold what was promised. Returns the
// number of rows, or -1 with *error filled.
int64_t rows_visit(const struct input_image *image, bool small, struct base_error *error);

#endif
