// SPDX-License-Identifier: Apache-2.0
// An OAT file's methods -> rows, by their headers and their code. See oat_track.h for what is exact in them.
#ifndef QUTC_CFI_OAT_ROWS_H
#define QUTC_CFI_OAT_ROWS_H

#include "qutc/cfi/oat_header.h"
#include "qutc/cfi/oat_track.h"

struct cfi_oat_counts {
    uint64_t methods;   // described by another source, or with a header that holds
    uint64_t described; // of these, by another source: no rows were made
    uint64_t certainty[CFI_OAT_CERTAINTIES];
    uint64_t no_frame_info;          // headers of stubs that do not say a frame: no rows
    uint64_t no_header;              // named as methods, without a header that holds: no rows
    uint64_t trampolines;            // and thunks: code without header that goes on elsewhere
    uint64_t symbols, class_entries; // that named starts; class_entries only where no symbol names a method
    bool scanned;                    // nothing names any: the code was searched for headers
    bool unknown_version;            // no header was read
};

// Appends to `rows` (empty on entry) the rows of all methods whose start `earlier` has as a hole.
int cfi_oat_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end,
                 const struct cfi_row_list *earlier, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                 struct cfi_oat_counts *counts, struct base_error *error);

// All that headers can speak of. False where there is no code, or the version is not known.
bool cfi_oat_view_of(const struct input_image *image, struct cfi_oat_view *view);

#endif
