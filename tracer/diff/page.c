// SPDX-License-Identifier: Apache-2.0
// What is compared, as one HTML page: the JSON with the tree, drawn by tracer/report/page_diff.
#include <stdlib.h>

#include "tracer/diff/inside.h"
#include "tracer/export/weight_words.h"
#include "tracer/report/blob.h"
#include "tracer/report/html.h"
#include "tracer/report/page.h"

static void write_piece(struct sink *sink, unsigned piece)
{
    sink_bytes(sink, report_diff_pieces[piece].bytes, report_diff_pieces[piece].size);
}

static void write_files(const struct diff *diff, struct sink *sink, enum diff_side side)
{
    for (size_t i = 0; i < diff->recordings[side]; i++) {
        const struct diff_recording *told = &diff->told[diff_index(diff, side, i)];
        sink_text(sink, i ? ", " : "");
        report_html_text(sink, base_interner_text(&diff->strings, told->path));
        sink_text(sink, told->is_complete ? "" : " (incomplete)");
    }
}

static void write_side(const struct diff *diff, struct sink *sink, enum diff_side side)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < diff->recordings[side]; i++)
        samples += diff->told[diff_index(diff, side, i)].samples;
    sink_text(sink, side == DIFF_A ? "<div><dt>A, before</dt><dd>" : "<div><dt>B, now</dt><dd>");
    write_files(diff, sink, side);
    if (!diff->basis[side].sum) {
        sink_text(sink, "</dd></div>\n");
        return;
    }
    sink_text(sink, ": ");
    report_html_text(sink, export_weights_amount(diff->measure, diff->basis[side].sum).text);
    sink_text(sink, " of ");
    report_html_text(sink, export_weights_name(diff->measure));
    sink_text(sink, " in ");
    report_html_count(sink, samples);
    sink_text(sink, " samples</dd></div>\n");
}

static void write_summary(const struct diff *diff, struct sink *sink)
{
    bool is_complete = true;
    for (size_t i = 0; i < diff_all(diff); i++)
        is_complete = is_complete && diff->told[i].is_complete;
    if (!is_complete)
        sink_text(sink, "<div id=\"losses\" class=\"has-loss\"><span class=\"sign\"></span>A recording is incomplete: "
                        "qut info says what it lacks.</div>\n");
    sink_text(sink, "<p id=\"command\">qut diff</p>\n<dl id=\"facts\">\n");
    write_side(diff, sink, DIFF_A);
    write_side(diff, sink, DIFF_B);
    sink_text(sink, "<div><dt>judged</dt><dd>");
    sink_text(sink, diff->by_amount ? "amounts of a recording" : "shares of the whole");
    sink_text(sink, diff_all(diff) == 2 ? ", by samples alone: one recording a side" : ", by samples and recordings");
    sink_text(sink, "</dd></div>\n</dl>\n");
}

int diff_write_page(const struct diff *diff, struct sink *sink, struct base_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool is_good = memory != NULL;
    if (memory) {
        diff_print_json(diff, 0, true, memory);
        is_good = !ferror(memory);
        is_good = fclose(memory) == 0 && is_good;
    }
    if (is_good) {
        write_piece(sink, REPORT_BEFORE_TITLE);
        report_html_text(sink, base_interner_text(&diff->strings, diff->told[0].path));
        write_piece(sink, REPORT_BEFORE_SUMMARY);
        write_summary(diff, sink);
        write_piece(sink, REPORT_BEFORE_DATA);
        report_blob(sink, (const uint8_t *)text, size);
        write_piece(sink, REPORT_AFTER_DATA);
    }
    free(text);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "page of %zu functions", diff->row_count);
}
