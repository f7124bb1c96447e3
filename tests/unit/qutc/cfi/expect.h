// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_QUTC_CFI_EXPECT_H
#define TESTS_UNIT_QUTC_CFI_EXPECT_H

#include <check.h>
#include <stdlib.h>

#include "tests/support/rows.h"
#include "tests/support/run_suite.h"

// Compares and frees.
static inline void expect_text(char *text, const char *expected)
{
    ck_assert_msg(strcmp(text, expected) == 0, "got\n%swanted\n%s", text, expected);
    free(text);
}

// The rows of a section that is then freed.
static inline void expect_rows(struct frame_asm *a, const char *expected)
{
    expect_text(rows_of(a, NULL), expected);
    frame_free(a);
}

// The rows of one FDE over [0, 0x40) of the text.
static inline void expect_program(const struct arch *arch, const uint8_t *program, size_t size, const char *expected)
{
    expect_text(rows_of_program(arch, program, size), expected);
}

#endif
