// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/recordings.h"

#include <time.h>

#include "tracer/report/html.h"

static void cell(struct sink *sink, const char *text)
{
    sink_text(sink, "<td>");
    report_html_text(sink, text ? text : "");
    sink_text(sink, "</td>");
}

static void begin_number(struct sink *sink, const char *what)
{
    sink_text(sink, "<td class=\"number\" data-recording=\"");
    sink_text(sink, what);
    sink_text(sink, "\">");
}

static void row(struct sink *sink, const struct trace_recording *recording)
{
    char text[40] = "";
    const time_t seconds = (time_t)(recording->start_ns / 1000000000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    sink_text(sink, "<tr><th scope=\"row\">");
    report_html_text(sink, recording->name);
    sink_text(sink, "</th>");
    cell(sink, recording->host);
    cell(sink, recording->service);
    cell(sink, recording->version);
    cell(sink, recording->path);
    cell(sink, text);
    begin_number(sink, "length");
    report_html_time(sink, recording->end_ns > recording->start_ns ? recording->end_ns - recording->start_ns : 0);
    sink_text(sink, "</td>");
    begin_number(sink, "processes");
    report_html_count(sink, recording->process_count);
    sink_text(sink, "</td>");
    begin_number(sink, "hits");
    report_html_count(sink, recording->hits);
    sink_text(sink, "</td>");
    begin_number(sink, "present");
    report_html_count(sink, recording->present_samples);
    sink_text(sink, "</td>");
    cell(sink, recording->is_complete ? "" : "incomplete");
    sink_text(sink, "</tr>\n");
}

void report_recordings(struct sink *sink, const struct trace *trace)
{
    static const char *const texts[] = {"name", "host", "service", "version", "file", "began"};
    static const char *const numbers[] = {"length", "processes", "hits", "samples here"};
    if (!trace->recording_count)
        return;
    sink_text(
        sink,
        "<div class=\"tables facts\"><table class=\"counts\" id=\"recordings\"><caption>Recordings, put together by "
        "the hosts' clocks</caption>\n<thead><tr>");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sink_text(sink, "<th scope=\"col\">");
        sink_text(sink, texts[i]);
        sink_text(sink, "</th>");
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sink_text(sink, "<th scope=\"col\" class=\"number\">");
        sink_text(sink, numbers[i]);
        sink_text(sink, "</th>");
    }
    sink_text(sink, "<th scope=\"col\"></th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < trace->recording_count; i++)
        row(sink, &trace->recordings[i]);
    sink_text(sink, "</tbody></table></div>\n");
}
