// SPDX-License-Identifier: Apache-2.0
// The page of tracer/report/page as embed.py makes one file of it: what stands before, between and after that which
// comes from the trace.
#ifndef TRACER_REPORT_PAGE_H
#define TRACER_REPORT_PAGE_H

#include <stddef.h>

struct report_piece {
    const unsigned char *bytes;
    size_t size;
};

enum { REPORT_BEFORE_TITLE, REPORT_BEFORE_SUMMARY, REPORT_BEFORE_DATA, REPORT_AFTER_DATA, REPORT_PIECE_COUNT };
extern const struct report_piece report_pieces[REPORT_PIECE_COUNT];
// The same of tracer/report/page_diff.
extern const struct report_piece report_diff_pieces[REPORT_PIECE_COUNT];

#endif
