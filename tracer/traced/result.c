// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/traced/inside.h"

static void add_all(uint64_t *sums, const uint64_t *more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += more[i];
}

static void take_first(char *text, const char *other, size_t size)
{
    if (!text[0])
        memcpy(text, other, size);
}

static void take_greatest(uint64_t *greatest, uint64_t other)
{
    if (other > *greatest)
        *greatest = other;
}

static void add_place(struct traced_place_seen *sum, const struct traced_place_seen *seen)
{
    sum->matches += seen->matches;
    traced_place_saw(sum, seen->has_file, seen->before, seen->after);
}

void traced_place_saw(struct traced_place_seen *seen, bool has_file, uint32_t before, uint32_t after)
{
    seen->has_file |= has_file;
    seen->before = before > seen->before ? before : seen->before;
    seen->after = after && (!seen->after || after < seen->after) ? after : seen->after;
}

void traced_result_add(struct traced_result *sums, const struct traced_result *result)
{
#define EACH(field) (void)add_all(&sums->field, &result->field, 1)
#define ALL(field)  add_all(sums->field, result->field, sizeof sums->field / sizeof *sums->field)
    EACH(processes), EACH(processes_failed), EACH(modules), EACH(modules_failed), EACH(functions), EACH(traps);
    EACH(traps_refused);
    EACH(too_many), EACH(out_of_reach), EACH(enters), EACH(exits), EACH(lost_enters), EACH(lost_exits), EACH(passed);
    EACH(counted), EACH(short_calls), EACH(running), EACH(over_budget), EACH(thinned), EACH(unasked), EACH(threads),
        EACH(stops);
    EACH(begin_stop_ns), EACH(end_stop_ns), EACH(moved_threads), EACH(put_back), EACH(not_put_back);
    EACH(returns_put_back), EACH(drain_ns), EACH(forked), EACH(swept), EACH(outside);
    ALL(kinds);
    ALL(refusals);
    ALL(others);
    ALL(pattern_matches);
    ALL(least_matches);
    ALL(caller_matches);
    EACH(callers_left_out), EACH(places), EACH(places_refused);
    for (size_t i = 0; i < TRACED_PLACES_MAX; i++)
        add_place(&sums->places_seen[i], &result->places_seen[i]);
#undef EACH
#undef ALL
    take_first(sums->first_failure, result->first_failure, sizeof sums->first_failure);
    take_first(sums->first_module_failure, result->first_module_failure, sizeof sums->first_module_failure);
    take_first(sums->first_over_budget, result->first_over_budget, sizeof sums->first_over_budget);
    take_first(sums->first_place_refused, result->first_place_refused, sizeof sums->first_place_refused);
    take_first(sums->first_thinned, result->first_thinned, sizeof sums->first_thinned);
    take_greatest(&sums->longest_stop_ns, result->longest_stop_ns);
    take_greatest(&sums->rings_fullest_percent, result->rings_fullest_percent);
}

size_t traced_notes(const struct traced_result *result, struct trace_note *notes, size_t most)
{
    const struct trace_note all[] = {
        {.name = "calls-functions", .value = result->functions},
        {.name = "calls-by-jump", .value = result->kinds[QUT_PLAN_JUMP] + result->kinds[QUT_PLAN_NOPS]},
        {.name = "calls-by-padding", .value = result->kinds[QUT_PLAN_SHORT]},
        {.name = "calls-by-trap", .value = result->kinds[QUT_PLAN_TRAP]},
        {.name = "calls-refused-one-byte", .value = result->traps},
        {.name = "calls-not-put-back", .value = result->not_put_back},
        {.name = "calls-left-out-outside", .value = result->outside},
        {.name = "calls-left-out-short", .value = result->short_calls},
        {.name = "calls-running-before", .value = result->running},
        {.name = "calls-over-budget", .value = result->over_budget},
        {.name = "calls-thinned", .value = result->thinned},
        {.name = "calls-passed", .value = result->passed},
        {.name = "calls-stops", .value = result->stops},
        {.name = "calls-longest-stop-ns", .value = result->longest_stop_ns},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && count < most; i++)
        if (all[i].value)
            notes[count++] = all[i];
    uint64_t refused = 0;
    for (unsigned i = 0; i < QUT_PLAN_REFUSAL_END; i++)
        refused += result->refusals[i];
    if (refused && count < most)
        notes[count++] = (struct trace_note){.name = "calls-refused", .value = refused};
    return count;
}
