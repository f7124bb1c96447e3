// SPDX-License-Identifier: Apache-2.0
// What every fuzz target asserts: an error has a reason, and a table that was made can be read from end to end.
#ifndef TESTS_PROOF_FUZZ_FUZZ_H
#define TESTS_PROOF_FUZZ_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "libqut/runtime/table.h"
#include "qutc/qutc.h"

#include "tests/proof/fuzz/targets.h"

enum { FUZZ_ROWS_MAX = 2000, FUZZ_STARTS_MAX = 16 };

static inline void fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

// Rows ascend without a gap, and looking a pc up gives what walking the rows gave.
static inline void fuzz_read_rows(const struct qut_table *table)
{
    uint64_t pc = table->text_start, end;
    struct qut_rule rule, again;
    for (int i = 0; i < FUZZ_ROWS_MAX && runtime_table_next_row(table, &pc, &end, &rule); i++) {
        fuzz_require(end > pc);
        runtime_table_rule(table, end - 1, &again);
        fuzz_require(memcmp(&rule, &again, sizeof rule) == 0);
        if (i < FUZZ_STARTS_MAX) // it walks back over blocks without rows
            fuzz_require(runtime_table_row_start(table, pc) <= pc);
        pc = end;
    }
}

// A few bytes may claim 4 GiB of code, and get a table of 9 MB: the bound is the format's, and each run takes as long
// as ten thousand others.
static inline bool fuzz_is_huge(const struct input_image *image)
{
    const uint64_t bytes_max = 16 << 20;
    return image->exec_count && image->exec[image->exec_count - 1].end - image->exec[0].start > bytes_max;
}

// A table that the compiler made must pass its own checker.
static inline void fuzz_compile(const struct input_image *image)
{
    if (fuzz_is_huge(image))
        return;
    for (int small = 0; small < 2; small++) {
        struct qutc_compile_options options = {.small = small};
        struct base_error error = {0};
        uint8_t *bytes;
        size_t size;
        if (qutc_compile(image, &options, &bytes, &size, NULL, &error) != 0) {
            fuzz_require(error.reason != BASE_OK);
            continue;
        }
        struct qut_table table;
        fuzz_require(runtime_table_attach(&table, bytes, size, NULL) == QUT_TABLE_OK);
        fuzz_read_rows(&table);
        free(bytes);
    }
}

#endif
