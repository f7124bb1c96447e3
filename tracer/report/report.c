// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/report.h"

#include "tracer/report/blob.h"
#include "tracer/report/html.h"
#include "tracer/report/pack.h"
#include "tracer/report/page.h"
#include "tracer/report/summary.h"

static void write_piece(struct sink *sink, unsigned piece)
{
    sink_bytes(sink, report_pieces[piece].bytes, report_pieces[piece].size);
}

int report_write(const struct selection *selection, const struct names *names, struct sink *sink,
                 struct base_error *error)
{
    const struct trace *trace = selection->whole;
    struct bytes bytes;
    if (report_pack(selection, names, &bytes) != 0) {
        report_bytes_free(&bytes);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "report of %zu records", trace->sample_count);
    }
    write_piece(sink, REPORT_BEFORE_TITLE);
    report_html_text(sink, trace->command ? trace->command : "");
    write_piece(sink, REPORT_BEFORE_SUMMARY);
    if (report_summary(sink, trace, names) != 0) {
        report_bytes_free(&bytes);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "summary of %zu records", trace->sample_count);
    }
    write_piece(sink, REPORT_BEFORE_DATA);
    report_blob(sink, bytes.items, bytes.count);
    write_piece(sink, REPORT_AFTER_DATA);
    report_bytes_free(&bytes);
    return 0;
}
