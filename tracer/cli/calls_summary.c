// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/calls_options.h"

#include <inttypes.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"
#include "tracer/calls/plan.h"
#include "tracer/patch/patch.h"
#include "tracer/traced/probe.h"

// " (1,234 by jump, 5 by padding)": what is not 0.
struct words {
    char text[512];
    size_t length;
};

static void add(struct words *words, uint64_t count, const char *what)
{
    if (!count || words->length >= sizeof words->text)
        return;
    const int more = snprintf(words->text + words->length, sizeof words->text - words->length, "%s%s %s",
                              words->length ? ", " : "", base_quantity_count(count).text, what);
    words->length += more > 0 ? (size_t)more : 0;
}

static void say_functions(const struct traced_result *calls, bool is_probe)
{
    const char *done = is_probe ? "probed" : "traced";
    const bool can_trap = !is_probe;
    struct words how = {.length = 0}, refused = {.length = 0};
    for (unsigned kind = QUT_PLAN_REFUSED + 1; kind < QUT_PLAN_KIND_END; kind++)
        add(&how, calls->kinds[kind], calls_kind_text(kind));
    cli_report(stderr, NULL, "%s functions of %s modules %s%s%s%s", base_quantity_count(calls->functions).text,
               base_quantity_count(calls->modules).text, done, how.length ? " (" : "", how.text, how.length ? ")" : "");
    for (unsigned why = QUT_PLAN_OK + 1; why < QUT_PLAN_REFUSAL_END; why++)
        add(&refused, calls->refusals[why], calls_refusal_text(why));
    add(&refused, calls->traps, can_trap ? "have room for a trap only (--traps)" : "have room for a trap only");
    add(&refused, calls->traps_refused, "have room for a trap only, which cannot be caught there");
    add(&refused, calls->out_of_reach, "are too far from free memory");
    add(&refused, calls->too_many, "are more than there are numbers");
    for (unsigned state = PATCH_IN + 1; state < PATCH_STATES; state++)
        add(&refused, calls->others[state], patch_state_text(state));
    if (refused.length)
        cli_report(stderr, NULL, "not %s: %s", done, refused.text);
}

// With probes it is known of those alone that are told.
static bool tells_calls(const struct record_command_options *options)
{
    const struct traced_probe *probe = options->calls->probe;
    return !probe || probe->tells_calls;
}

static void say_unasked(const struct traced_result *calls)
{
    if (calls->unasked)
        cli_report(stderr, NULL,
                   "%s functions were not known when the script asked what their arguments are: what asks does not run "
                   "there",
                   base_quantity_count(calls->unasked).text);
}

static void say_calls(const struct traced_result *calls)
{
    cli_report(stderr, NULL, "%s entries, %s exits of %s threads", base_quantity_count(calls->enters).text,
               base_quantity_count(calls->exits).text, base_quantity_count(calls->threads).text);
    if (calls->counted)
        cli_report(stderr, NULL, "%s calls counted only%s%s", base_quantity_count(calls->counted).text,
                   calls->short_calls ? ", as they were shorter than asked for" : "",
                   calls->outside ? ", as they were within no --caller, or too deep" : "");
    if (calls->over_budget)
        cli_report(stderr, NULL, "%s functions were over the budget and are counted only since: %s%s",
                   base_quantity_count(calls->over_budget).text, calls->first_over_budget,
                   calls->over_budget > 1 ? ", ..." : "");
    if (calls->thinned)
        cli_report(
            stderr, NULL,
            "%s functions were called more often than --thin allows: of their calls, all of which are counted, one "
            "of several is recorded since: %s%s",
            base_quantity_count(calls->thinned).text, calls->first_thinned, calls->thinned > 1 ? ", ..." : "");
    if (calls->running)
        cli_report(stderr, NULL, "%s calls ran already when tracing began", base_quantity_count(calls->running).text);
    if (calls->passed)
        cli_report(stderr, NULL,
                   "%s calls were not traced: their stack has no place where a return address can be kept",
                   base_quantity_count(calls->passed).text);
}

static void say_stops(const struct traced_result *calls)
{
    struct words back = {.length = 0};
    add(&back, calls->put_back, "places put back");
    add(&back, calls->returns_put_back, "return addresses");
    cli_report(stderr, NULL, "%s stops of %s in all, the longest %s; %s%squt itself used %s",
               base_quantity_count(calls->stops).text,
               base_quantity_time(calls->begin_stop_ns + calls->end_stop_ns).text,
               base_quantity_time(calls->longest_stop_ns).text, back.text, back.length ? "; " : "",
               base_quantity_time(calls->drain_ns).text);
}

static void say_children(const struct traced_result *calls)
{
    if (calls->forked)
        cli_report(stderr, NULL, "%s of the %s processes are children of fork, which go on in their parent's code",
                   base_quantity_count(calls->forked).text, base_quantity_count(calls->processes).text);
    if (calls->swept)
        cli_report(stderr, NULL, "%s children of fork made no events; their code was put back",
                   base_quantity_count(calls->swept).text);
}

static bool say_patterns(const struct record_command_options *record, const struct traced_result *calls)
{
    const struct traced_options *options = record->calls;
    bool is_whole = true;
    for (size_t i = 0; i < options->pattern_count; i++) {
        if (options->is_excluded[i] || options->is_optional[i] || calls->pattern_matches[i])
            continue;
        struct calls_hint hint;
        cli_report(stderr, options->patterns[i], "no function fits, in any module that was loaded%s",
                   cli_calls_hint(record->asked, options->patterns[i], &hint));
        is_whole = false;
    }
    return is_whole;
}

static bool say_callers(const struct record_command_options *record, const struct traced_result *calls)
{
    const struct traced_probe *probe = record->calls->probe;
    bool is_whole = true;
    for (size_t i = 0; probe && i < QUT_PROBE_PROGRAMS_MAX; i++) {
        struct calls_hint hint;
        if (!probe->callers[i] || calls->caller_matches[i])
            continue;
        cli_report(stderr, probe->callers[i],
                   "no function fits from which calls are meant, in any module that was loaded%s",
                   cli_calls_hint(record->asked, probe->callers[i], &hint));
        is_whole = false;
    }
    if (calls->callers_left_out)
        cli_report(stderr, NULL, "%s functions had no room from which calls are meant: those were not seen; name fewer",
                   base_quantity_count(calls->callers_left_out).text);
    return is_whole && !calls->callers_left_out;
}

static bool say_leasts(const struct traced_options *options, const struct traced_result *calls)
{
    bool is_whole = true;
    for (size_t i = 0; i < options->least_count; i++) {
        const struct traced_least *least = &options->leasts[i];
        char text[TRACED_PATTERN_BYTES + 1];
        if (calls->least_matches[i])
            continue;
        snprintf(text, sizeof text, "%.*s", (int)least->pattern_bytes, least->pattern);
        cli_report(stderr, text, "no traced function fits, in any module that was loaded (--min-duration)");
        is_whole = false;
    }
    return is_whole;
}

// A line that no module has code of.
static void say_line(const struct traced_place *place, const struct traced_place_seen *seen)
{
    char name[TRACED_PATTERN_BYTES + 16], near[64];
    snprintf(name, sizeof name, "%s:%" PRIu32, place->file, place->line);
    if (!seen->has_file) {
        cli_report(stderr, name, "no module that was loaded has debug information of such a file");
        return;
    }
    if (seen->before && seen->after)
        snprintf(near, sizeof near, "s with code are %" PRIu32 " and %" PRIu32, seen->before, seen->after);
    else
        snprintf(near, sizeof near, " with code is %" PRIu32, seen->before + seen->after);
    cli_report(stderr, name, "no code was made of this line; the nearest line%s", near);
}

// Places within functions, of probes.
static bool say_places(const struct record_command_options *record, const struct traced_result *calls)
{
    const struct traced_probe *probe = record->calls->probe;
    if (!probe || !probe->place_count)
        return true;
    bool is_whole = !calls->places_refused;
    for (size_t i = 0; i < probe->place_count; i++) {
        if (calls->places_seen[i].matches)
            continue;
        is_whole = false;
        if (probe->places[i].file)
            say_line(&probe->places[i], &calls->places_seen[i]);
        else
            cli_report(stderr, probe->places[i].pattern, "no function fits, in any module that was loaded");
    }
    if (calls->places_refused)
        cli_report(stderr, NULL, "%s places cannot be probed; the first: %s",
                   base_quantity_count(calls->places_refused).text, calls->first_place_refused);
    if (calls->places && !record->quiet)
        cli_report(stderr, NULL, "%s places within functions probed", base_quantity_count(calls->places).text);
    return is_whole;
}

bool cli_calls_summary(const struct record_command_options *options, const struct record_result *result)
{
    const struct traced_result *calls = &result->calls;
    bool is_whole = calls->processes != 0;
    const bool is_probe = options->calls->probe != NULL;
    if (!options->quiet && (calls->functions || (is_probe && calls->processes))) {
        if (calls->functions || !calls->places)
            say_functions(calls, is_probe);
        if (tells_calls(options))
            say_calls(calls);
        if (!is_probe)
            say_children(calls);
        if (is_probe)
            say_unasked(calls);
        say_stops(calls);
    }
    if (calls->processes_failed)
        cli_report(stderr, NULL, "calls of %s processes were not %s, or not all; the first: %s",
                   base_quantity_count(calls->processes_failed).text, is_probe ? "probed" : "traced",
                   calls->first_failure);
    else if (!calls->processes)
        cli_report(stderr, NULL, "no calls were traced: the agent did not offer to");
    if (calls->modules_failed)
        cli_report(stderr, NULL, "%s modules could not be traced; the first: %s",
                   base_quantity_count(calls->modules_failed).text, calls->first_module_failure);
    if (is_probe && calls->processes && !calls->functions && !calls->places) {
        cli_report(stderr, NULL, "no function was probed");
        is_whole = false;
    }
    if (calls->processes) {
        is_whole &= say_patterns(options, calls);
        is_whole &= say_callers(options, calls);
        is_whole &= say_places(options, calls);
        is_whole &= say_leasts(options->calls, calls);
    }
    if (calls->lost_enters + calls->lost_exits) {
        cli_report(
            stderr, options->path,
            "%s entries and %s exits were lost: they came faster than they could be written. --wait loses none%s",
            base_quantity_count(calls->lost_enters).text, base_quantity_count(calls->lost_exits).text,
            is_probe ? ""
                     : ", --buffer has more room, --thin, --budget or -x takes calls away of functions that are "
                       "called most");
        is_whole = false;
    }
    if (calls->not_put_back)
        cli_report(stderr, NULL, "%s functions could not be put back: they go on through the agent's code",
                   base_quantity_count(calls->not_put_back).text);
    return is_whole && !calls->processes_failed && !calls->modules_failed && !calls->not_put_back;
}
