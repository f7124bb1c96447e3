// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_top.h"

#include <string.h>

#include "cli/diagnostics.h"
#include "tracer/analysis/analysis.h"
#include "tracer/info/info_tables.h"

enum { ROWS = 5 };
// About a second: a summary is worth no longer wait.
static const uint64_t most_bytes = 8000000;

static const struct info_wanted wanted = {.functions = true, .rows = ROWS, .weight = -1};

void cli_record_top_read(struct record_top *top, const char *path, uint64_t file_bytes)
{
    const struct names_options wanted_names = {.inlined = true};
    struct base_error error = {0};
    char text[256];
    *top = (struct record_top){.names = NULL};
    if (file_bytes > most_bytes) {
        snprintf(top->why, sizeof top->why, "the file is large; %s info --top %d has them", cli_program, ROWS);
        return;
    }
    if (trace_read(path, &top->trace, &error) != 0) {
        snprintf(top->why, sizeof top->why, "%s", base_error_text(&error, text, sizeof text));
        return;
    }
    top->names = top->trace.present_samples ? names_of(&top->trace, &wanted_names, &error) : NULL;
    const struct selection_wanted everything = {.to_ns = UINT64_MAX};
    if (top->names && info_tables_select(&top->selection, &top->trace, &everything, &error) == 0) {
        top->is_read = export_quality_make(&top->quality, &top->trace, top->names) == 0;
        if (!top->is_read) {
            base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "quality");
            analysis_selection_free(&top->selection);
        }
    }
    if (!top->is_read && top->names)
        names_free(top->names);
    if (top->is_read)
        return;
    if (top->trace.present_samples)
        snprintf(top->why, sizeof top->why, "%s", base_error_text(&error, text, sizeof text));
    trace_free(&top->trace);
}

static void say_advice(void *context, const char *text)
{
    cli_report(context, NULL, "%s", text);
}

static void say_quality(const struct record_top *top, FILE *output)
{
    char line[512];
    export_quality_line(&top->quality, line, sizeof line);
    cli_report(output, "quality", "%s", line);
    export_quality_advise(&top->quality, say_advice, output);
}

bool cli_record_top_own(const struct record_top *top, struct record_own *own)
{
    struct hot_spots spots;
    if (!top->is_read || !top->trace.has_cpu_time ||
        analysis_hot_spots_make(&spots, &top->selection, MEASURE_CPU, false) != 0)
        return false;
    *own = (struct record_own){spots.own, spots.own_share, spots.own_error};
    bool is_known = spots.basis.sum + spots.own > 0;
    analysis_hot_spots_free(&spots);
    return is_known;
}

void cli_record_top_text(const struct record_top *top, FILE *output)
{
    if (top->why[0])
        cli_report(output, NULL, "no top functions: %s", top->why);
    if (top->is_read)
        say_quality(top, output);
    if (top->is_read && info_tables_text(&wanted, &top->selection, top->names, output) != 0)
        cli_report(output, NULL, "no top functions: out of memory");
}

void cli_record_top_json(const struct record_top *top, struct base_json *json)
{
    if (top->why[0])
        base_json_string(json, "top_error", top->why);
    if (top->is_read)
        export_quality_json(&top->quality, json);
    if (top->is_read && info_tables_json(&wanted, &top->selection, top->names, json) != 0)
        base_json_string(json, "top_error", "out of memory");
}

void cli_record_top_free(struct record_top *top)
{
    if (!top->is_read)
        return;
    analysis_selection_free(&top->selection);
    names_free(top->names);
    trace_free(&top->trace);
    top->is_read = false;
}
