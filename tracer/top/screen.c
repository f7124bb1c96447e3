// SPDX-License-Identifier: Apache-2.0
#include "tracer/top/screen.h"

#include <inttypes.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "tracer/export/quality.h"
#include "tracer/top/growing.h"

static const uint64_t ns_per_s = 1000000000;
static const char keys[] = "f functions  t threads  w waits  l locks  a all  p pause  h help  q quit";
static const char short_keys[] = "f t w l: views  a all  h help  q quit";
enum { COLUMNS_OF_KEYS = sizeof keys - 1 };

// What was read, and the part of it that is shown.
struct look {
    struct trace trace;
    struct selection selection;
    struct names *names;
    struct quality quality;
};

const char *top_view_name(enum top_view view)
{
    static const char *const names[TOP_VIEW_COUNT] = {"functions", "threads", "waits", "locks"};
    return view < TOP_VIEW_COUNT ? names[view] : "";
}

// The last window_ns up to now. Samples of the last moments may not have reached the file: the window ends with the
// newest that has, as long as that is not older than a thread's samples ever wait.
static struct selection_wanted part_of(const struct trace *trace, const struct top_wanted *wanted)
{
    enum { LATE_AT_MOST_S = 2 };
    struct selection_wanted part = {.thread = wanted->thread, .to_ns = UINT64_MAX};
    if (wanted->of_all || !wanted->window_ns)
        return part;
    uint64_t late_ns = LATE_AT_MOST_S * ns_per_s, end_ns = trace->end_ns;
    if (wanted->now_ns > late_ns && wanted->now_ns - late_ns > end_ns)
        end_ns = wanted->now_ns - late_ns;
    part.to_ns = end_ns > trace->start_ns ? end_ns - trace->start_ns : 0;
    part.from_ns = part.to_ns > wanted->window_ns ? part.to_ns - wanted->window_ns : 0;
    return part;
}

static int take_look(struct look *look, const char *path, const struct top_wanted *wanted, struct base_error *error)
{
    const struct names_options names_wanted = {.inlined = !wanted->no_inlines};
    if (top_growing_read(path, &look->trace, error) != 0)
        return -1;
    // Samples that writers tell of, and that are not in the file yet, are under way, not lost.
    if (!wanted->is_over)
        look->trace.damaged_samples = 0;
    const struct selection_wanted part = part_of(&look->trace, wanted);
    look->names = names_of(&look->trace, &names_wanted, error);
    if (look->names && info_tables_select(&look->selection, &look->trace, &part, error) == 0) {
        if (export_quality_make(&look->quality, &look->trace, look->names) == 0)
            return 0;
        analysis_selection_free(&look->selection);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "quality");
    }
    if (look->names)
        names_free(look->names);
    trace_free(&look->trace);
    return -1;
}

static void end_look(struct look *look)
{
    analysis_selection_free(&look->selection);
    names_free(look->names);
    trace_free(&look->trace);
}

static struct info_wanted tables_of(const struct top_wanted *wanted)
{
    return (struct info_wanted){.functions = wanted->view == TOP_FUNCTIONS,
                                .rows = wanted->rows,
                                .by_thread = wanted->view == TOP_THREADS,
                                .blocked = wanted->view == TOP_WAITS,
                                .locks = wanted->view == TOP_LOCKS,
                                .show_agent = wanted->show_agent,
                                .weight = -1,
                                .columns = wanted->columns};
}

static uint64_t shown_ns(const struct look *look)
{
    const struct selection *selection = &look->selection;
    return selection->end_ns > selection->start_ns ? selection->end_ns - selection->start_ns : 0;
}

static double processors(const struct look *look)
{
    uint64_t all_ns = shown_ns(look);
    return all_ns ? (double)look->selection.sums[MEASURE_CPU] / (double)all_ns : 0;
}

static uint64_t samples_of(const struct trace *trace)
{
    return trace->present_samples;
}

static void print_head(const struct look *look, const struct top_wanted *wanted, FILE *output)
{
    const struct trace *trace = &look->trace;
    char line[512];
    cli_print_name(output, wanted->subject);
    fprintf(output, "  %s  %s thread%s", base_quantity_time(trace->end_ns - trace->start_ns).text,
            base_quantity_count(trace->thread_count).text, trace->thread_count == 1 ? "" : "s");
    if (trace->process_count > 1)
        fprintf(output, " of %s processes", base_quantity_count(trace->process_count).text);
    fprintf(output, "  %s samples  %s\n", base_quantity_count(samples_of(trace)).text,
            base_quantity_bytes(trace->file_bytes).text);
    export_quality_line(&look->quality, line, sizeof line);
    fprintf(output, "%s\n", line);
    fprintf(output, "%s of %s", top_view_name(wanted->view), wanted->of_all || !wanted->window_ns ? "all" : "the last");
    fprintf(output, " %s", base_quantity_time(shown_ns(look)).text);
    if (trace->has_cpu_time)
        fprintf(output, "; %.2f processors in use", processors(look));
    if (wanted->thread) {
        fputs("; threads ", output);
        cli_print_name(output, wanted->thread);
    }
    fprintf(output, "%s%s\n", *wanted->remark ? "; " : "", wanted->remark);
    fprintf(output, "%s\n", !wanted->has_keys ? "" : wanted->columns < COLUMNS_OF_KEYS ? short_keys : keys);
}

int top_screen_text(const char *path, const struct top_wanted *wanted, FILE *output, struct base_error *error)
{
    struct look look = {.names = NULL};
    const struct info_wanted tables = tables_of(wanted);
    if (take_look(&look, path, wanted, error) != 0)
        return -1;
    print_head(&look, wanted, output);
    int result = info_tables_text(&tables, &look.selection, look.names, output);
    if ((tables.blocked || tables.locks) && !look.selection.sums[MEASURE_BLOCKED])
        fputs("  none. Waits are recorded of a COMMAND (--sync), or with -p PID --wall\n", output);
    end_look(&look);
    return result == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "tables");
}

int top_screen_json(const char *path, const struct top_wanted *wanted, struct base_json *json, struct base_error *error)
{
    struct look look = {.names = NULL};
    struct info_wanted tables = tables_of(wanted);
    if (take_look(&look, path, wanted, error) != 0)
        return -1;
    const struct trace *trace = &look.trace;
    // A reader takes what it wants.
    tables.functions = tables.by_thread = tables.blocked = tables.locks = true;
    base_json_open(json, NULL, '{');
    base_json_string(json, "subject", wanted->subject);
    base_json_number(json, "elapsed_ns", trace->end_ns - trace->start_ns);
    base_json_number(json, "from_ns", look.selection.start_ns - trace->start_ns);
    base_json_number(json, "to_ns", look.selection.start_ns - trace->start_ns + shown_ns(&look));
    base_json_number(json, "processes", trace->process_count);
    base_json_number(json, "threads", trace->thread_count);
    base_json_number(json, "samples", samples_of(trace));
    base_json_number(json, "file_bytes", trace->file_bytes);
    base_json_real(json, "processors", processors(&look), 4);
    export_quality_json(&look.quality, json);
    int result = info_tables_json(&tables, &look.selection, look.names, json);
    base_json_close(json, '}');
    end_look(&look);
    return result == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "tables");
}
