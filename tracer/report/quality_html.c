// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/quality_html.h"

#include "tracer/report/html.h"

bool report_quality_is_bad(const struct quality *quality)
{
    return quality->sum && !export_quality_all_good(quality);
}

void report_quality_tell(struct sink *sink, const struct quality *quality)
{
    char line[512];
    if (!report_quality_is_bad(quality))
        return;
    export_quality_line(quality, line, sizeof line);
    sink_text(sink, " Quality: ");
    report_html_text(sink, line);
    sink_text(sink, ".");
}

static void say(void *context, const char *text)
{
    struct sink *sink = context;
    sink_text(sink, "<li>");
    report_html_text(sink, text);
    sink_text(sink, "</li>\n");
}

void report_quality_advice(struct sink *sink, const struct quality *quality)
{
    if (!report_quality_is_bad(quality))
        return;
    sink_text(sink, "<p>What is not good, and what helps:</p><ul id=\"advice\">\n");
    export_quality_advise(quality, say, sink);
    sink_text(sink, "</ul>\n");
}

void report_quality_facts(struct sink *sink, const struct quality *quality)
{
    static const char *const names[QUALITY_COUNT] = {
        [QUALITY_WHOLE] = "whole stacks",
        [QUALITY_NAMED] = "with a name",
        [QUALITY_RUN_TIME] = "made at run time",
        [QUALITY_GUESSED] = "with a guess",
        [QUALITY_UNTICKED] = "met by no tick",
        [QUALITY_LATE] = "ticks late",
        [QUALITY_LOST] = "samples lost"}; // the page counts the kernel's by itself
    for (unsigned aspect = 0; aspect < QUALITY_COUNT; aspect++) {
        if (!quality->all[aspect] || !names[aspect])
            continue;
        sink_text(sink, "<div><dt>");
        sink_text(sink, names[aspect]);
        sink_text(sink, "</dt><dd>");
        sink_fixed(sink, (int64_t)(export_quality_share(quality, aspect) * 1000 + 0.5), 1);
        sink_text(sink, " %</dd></div>\n");
    }
}
