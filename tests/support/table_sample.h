// SPDX-License-Identifier: Apache-2.0
// One small table with every form in it, for tests that spoil it and for those that carry it as bytes.
#ifndef TESTS_SUPPORT_TABLE_SAMPLE_H
#define TESTS_SUPPORT_TABLE_SAMPLE_H

#include "tests/support/table_maker.h"

// The rows; the table is made with --small.
void sample_fill(struct maker *m);

#endif
