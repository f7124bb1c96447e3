// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/selection_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"

int cli_take_pids(struct trace_options *options, const char *value)
{
    struct selection_wanted *wanted = &options->wanted;
    const char *at = value;
    wanted->pid_count = 0;
    do {
        char *end;
        unsigned long pid = strtoul(at, &end, 10);
        bool is_number = *at >= '0' && *at <= '9' && pid > 0 && pid <= INT32_MAX && (*end == ',' || *end == '\0');
        if (!is_number || wanted->pid_count == TRACE_PIDS_MAX)
            return cli_bad_value("pid", value, "up to 64 numbers of processes, with commas between them");
        options->pids[wanted->pid_count++] = (uint32_t)pid;
        at = *end ? end + 1 : NULL;
    } while (at);
    wanted->pids = options->pids;
    return 0;
}

// *end: behind the unit.
static bool take_time(const char *text, char **end, uint64_t *time_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 6e10}, {"s", 1e9}};
    if (!((*text >= '0' && *text <= '9') || *text == '.'))
        return false;
    double value = strtod(text, end), unit_ns = 1e9;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strncmp(*end, units[i].name, strlen(units[i].name)) == 0) {
            unit_ns = units[i].ns;
            *end += strlen(units[i].name);
            break;
        }
    if (!(value * unit_ns < 9e18))
        return false;
    *time_ns = (uint64_t)(value * unit_ns + 0.5);
    return true;
}

int cli_take_between(struct selection_wanted *wanted, const char *value)
{
    char *end = (char *)(uintptr_t)value;
    uint64_t from_ns = 0, to_ns = UINT64_MAX;
    bool is_good = *value == ',' || take_time(value, &end, &from_ns);
    is_good = is_good && *end == ',' && (!end[1] || (take_time(end + 1, &end, &to_ns) && !*end)) && from_ns < to_ns;
    if (!is_good)
        return cli_bad_value("between", value,
                             "two times with a comma between them, the earlier one first: 1.5s,2s or 200ms,");
    wanted->from_ns = from_ns;
    wanted->to_ns = to_ns;
    return 0;
}

bool cli_selects_a_part(const struct trace_options *options)
{
    const struct selection_wanted *wanted = &options->wanted;
    return options->has_kind || wanted->pid_count || wanted->thread || wanted->from_ns || wanted->to_ns != UINT64_MAX;
}

static void say_line(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

bool cli_selection_fits(const struct trace_options *options, const char *path, const struct selection *selection)
{
    if (selection->trace.sample_count || (selection->trace.calls_count && selection->trace.thread_count) ||
        !cli_selects_a_part(options))
        return true;
    cli_report(stderr, path, "nothing in it fits what was asked for (kind %s); it has",
               analysis_kind_name(selection->kind));
    analysis_selection_say(selection->whole, say_line, (void *)(uintptr_t)path);
    return false;
}
