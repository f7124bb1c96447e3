// SPDX-License-Identifier: Apache-2.0
// libqutc: from an ELF image to a QUT table. No function prints or exits; all may allocate and none is signal-safe.
// Threads: calls on different objects may run at the same time.
#ifndef QUTC_QUTC_H
#define QUTC_QUTC_H

#include "base/error.h"
#include "formats/qut_table.h"
#include "qutc/cfi/go_rows.h"
#include "qutc/cfi/oat_rows.h"
#include "qutc/code/fill.h"
#include "qutc/code/mend.h"
#include "qutc/input/image.h"

struct qutc_compile_options {
    bool small;                 // fewer bytes for a slightly slower lookup
    enum code_fill_extent fill; // code that nothing describes is followed, and described where every way proves it
    bool check;                 // so is all other code, and what contradicts it is mended; else where that is cheap
    bool as_stated;             // nothing is mended
};

// What compiling one image met. Times are of this call.
struct qutc_compile_stats {
    uint64_t fde_count;
    uint64_t cie_count;
    uint64_t exidx_count;
    uint64_t source_rows; // rows as the frame programs state them
    uint64_t row_count;   // rows of the table
    uint32_t rule_count;  // distinct
    uint64_t
        skipped_fdes;  // records dropped whole because they contradict the format (each is in `first_skipped`'s kind)
    uint64_t overlaps; // FDEs that overlap an earlier one
    uint64_t table_bytes;
    struct cfi_oat_counts oat;
    struct cfi_go_counts go;
    struct code_fill_counts code;
    struct code_mend_counts mend;
    struct base_error first_skipped; // why the first of skipped_fdes was dropped
};

// *table is allocated with malloc (size *table_size), a complete .qut file image that passes runtime_table_attach.
int qutc_compile(const struct input_image *image, const struct qutc_compile_options *options, uint8_t **table,
                 size_t *table_size, struct qutc_compile_stats *stats, struct base_error *error);

// Publishes bytes under a path: written beside it, renamed; never rewritten in place. A reader never finds the name
// with half of the contents behind it; if synced, not even after a crash of the system. That waits for the
// disk. A device or a pipe is written to as it stands.
int qutc_publish(const char *path, const void *bytes, size_t size, bool synced, struct base_error *error);

#endif
