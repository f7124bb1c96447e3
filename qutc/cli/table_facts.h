// SPDX-License-Identifier: Apache-2.0
// What a table says of itself and of the file it was made from, counted from its rows.
#ifndef QUTC_CLI_TABLE_FACTS_H
#define QUTC_CLI_TABLE_FACTS_H

#include "libqut/runtime/table.h"
#include "qutc/input/image.h"

// The tables of the source file that a QUT table takes the place of.
struct cli_source {
    const char *name; // ".eh_frame + .eh_frame_hdr"
    uint64_t bytes;   // 0: the file itself has none
};
struct cli_source cli_source(const struct qut_table_header *header);

struct cli_coverage {
    uint64_t rule_bytes, refused_bytes, hole_bytes;
    uint64_t from_code_bytes; // of rule_bytes: by following the code itself
    uint64_t doubtful_bytes;  // of rule_bytes: stated, while the code says otherwise
    // Of the text, where its image is at hand; else 0.
    uint64_t code_bytes;    // what sections say is code
    uint64_t padding_bytes; // of hole_bytes: what fills up between functions
    struct {
        uint64_t rows, bytes;
    } refused[QUT_REFUSAL_END]; // by reason
};
// image: NULL where the table is all there is.
void cli_coverage(const struct qut_table *table, const struct input_image *image, struct cli_coverage *coverage);

// Names of where rows came from, `count` of them; each is a constant string.
enum { CLI_ORIGINS_MAX = 9 };
unsigned cli_origins(const struct qut_table_header *header, const char *names[CLI_ORIGINS_MAX]);

#endif
