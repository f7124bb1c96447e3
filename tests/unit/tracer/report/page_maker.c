// SPDX-License-Identifier: Apache-2.0
// Pages of traces made by hand, for the tests of what they show.
#include <stdio.h>

#include "tests/support/golden/golden.h"
#include "tests/unit/tracer/report/traces.h"
#include "tracer/report/report.h"

int main(int argc, char **argv)
{
    struct trace trace;
    if (argc != 3 || make_trace(argv[1], &trace) != 0) {
        fprintf(stderr, "usage: page_maker golden|damaged|empty|waits|RECORDS OUT.html\n");
        return 2;
    }
    struct base_error error = {0};
    struct names_options options = {0};
    struct names *names = names_of(&trace, &options, &error);
    struct sink *sink = sink_file(argv[2], &error);
    const struct selection_wanted everything = {.kind = SELECTION_ALL, .to_ns = UINT64_MAX};
    struct selection selection;
    int status = analysis_selection_make(&selection, &trace, &everything, &error);
    if (status == 0)
        status = names && sink ? report_write(&selection, names, sink, &error) : -1;
    if (sink && sink_close(sink, status == 0, &error) != 0)
        status = -1;
    if (status != 0) {
        char text[256];
        fprintf(stderr, "%s: %s\n", argv[2], base_error_text(&error, text, sizeof text));
    }
    names_free(names);
    analysis_selection_free(&selection);
    golden_free(&trace);
    return status == 0 ? 0 : 1;
}
