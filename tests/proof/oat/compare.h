// SPDX-License-Identifier: Apache-2.0
// One OAT file's rows twice: from its frame programs, and from its methods' headers and code; and how they compare.
#ifndef TESTS_PROOF_OAT_COMPARE_H
#define TESTS_PROOF_OAT_COMPARE_H

#include "qutc/cfi/oat_rows.h"

struct oat_rows {
    uint64_t text_start, text_end;
    struct cfi_rule_set rules; // of both
    struct cfi_row_list from_frames, from_headers;
    struct cfi_oat_counts counts;
};

// Aborts without memory. Free with oat_rows_free.
void oat_rows_of(const struct input_image *image, struct oat_rows *rows);
void oat_rows_free(struct oat_rows *rows);

struct oat_comparison {
    uint64_t cfi_bytes;        // of code that frame programs describe
    uint64_t exact_bytes;      // of these, with an exact header row that is the same rule
    uint64_t body_bytes;       // ... with a row that is true at calls only
    uint64_t refused_bytes;    // ... that headers refuse
    uint64_t missing_bytes;    // ... that headers do not describe
    uint64_t additional_bytes; // that headers alone describe
    uint64_t bodies;           // methods of which frame programs say the header's rule somewhere
    uint64_t bodies_other;     // ... nowhere
    // Differences in which the frame program is wrong: all ways through the method's code lead there with the header
    // rows' cfa, and it says another.
    uint64_t frames_wrong, frames_wrong_bytes;
    uint64_t mismatches; // all others
    uint64_t first_mismatch;
};

// Aborts without memory.
void oat_compare(const struct input_image *image, const struct oat_rows *rows, struct oat_comparison *comparison);

// Whether two lists of header rows are the same wherever `where` has rows. Else *pc is the first difference.
bool oat_same_rows(const struct oat_rows *a, const struct oat_rows *b, const struct cfi_row_list *where, uint64_t *pc);

#endif
