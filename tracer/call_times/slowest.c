// SPDX-License-Identifier: Apache-2.0
#include "tracer/call_times/slowest.h"

#include <stdlib.h>

enum { NOT_WITHIN = UINT32_MAX };

struct finder {
    struct call_times_slowest *slowest;
    const struct call_times_part *part;
    const bool *functions;            // by index: the one that is meant
    struct call_times_within *within; // by function
    size_t next;                      // of the slow calls, by number
    bool no_memory;
};

static void keep(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct finder *finder = context;
    const struct call_times_part *part = finder->part;
    if (!finder->functions[call->function] || call->how == CALL_TIMES_OPEN || call->how == CALL_TIMES_LOST ||
        call->begin_ns < part->from_ns || call->begin_ns > part->to_ns ||
        (part->threads && !part->threads[call->thread]))
        return;
    struct call_times_slow *slow = BASE_ADD(&finder->slowest->calls);
    finder->no_memory |= !slow;
    if (slow)
        *slow = (struct call_times_slow){call->number, call->begin_ns, call->end_ns, call->thread};
}

static int slowest_first(const void *one, const void *other)
{
    const struct call_times_slow *a = one, *b = other;
    const uint64_t left = a->end_ns - a->begin_ns, right = b->end_ns - b->begin_ns;
    return left != right ? (left > right ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *one, const void *other)
{
    const struct call_times_slow *a = one, *b = other;
    return (a->number > b->number) - (a->number < b->number);
}

static void choose(struct call_times_slowest *slowest, double share)
{
    struct call_times_slow *items = slowest->calls.items;
    const size_t count = slowest->calls.count;
    slowest->of = count;
    if (!count)
        return;
    qsort(items, count, sizeof *items, slowest_first);
    size_t kept = (size_t)((double)count * share);
    kept = kept < 1 ? 1 : kept > count ? count : kept;
    slowest->least_ns = items[kept - 1].end_ns - items[kept - 1].begin_ns;
    while (kept < count && items[kept].end_ns - items[kept].begin_ns == slowest->least_ns)
        kept++;
    slowest->calls.count = kept;
    qsort(items, kept, sizeof *items, by_number);
}

static void enter(void *context, struct call_times_call *call, const struct call_times_call *outer)
{
    struct finder *finder = context;
    const struct call_times_slowest *slowest = finder->slowest;
    call->own = outer ? outer->own : NOT_WITHIN;
    if (finder->next == slowest->calls.count || slowest->calls.items[finder->next].number != call->number)
        return;
    const struct call_times_slow *slow = &slowest->calls.items[finder->next];
    if (call->own == NOT_WITHIN)
        finder->slowest->total_ns += slow->end_ns - slow->begin_ns;
    call->own = finder->next++;
}

static void leave(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct finder *finder = context;
    const uint64_t ns = call->end_ns - call->begin_ns;
    if (call->own == NOT_WITHIN)
        return;
    struct call_times_within *within = &finder->within[call->function];
    within->calls++;
    within->self_ns += ns > call->callees_ns ? ns - call->callees_ns : 0;
}

static int most_first(const void *one, const void *other)
{
    const struct call_times_within *a = one, *b = other;
    if (a->self_ns != b->self_ns)
        return a->self_ns > b->self_ns ? -1 : 1;
    return (a->function > b->function) - (a->function < b->function);
}

static bool sort_within(struct finder *finder, size_t function_count)
{
    struct call_times_slowest *slowest = finder->slowest;
    if (!BASE_RESERVE(&slowest->within, function_count + 1))
        return false;
    for (size_t i = 0; i < function_count; i++) {
        finder->within[i].function = (uint32_t)i;
        if (finder->within[i].calls)
            *BASE_ADD(&slowest->within) = finder->within[i];
    }
    qsort(slowest->within.items, slowest->within.count, sizeof *slowest->within.items, most_first);
    return true;
}

int call_times_slowest_find(struct call_times_slowest *slowest, const struct call_events *calls,
                            const struct call_times_part *part, const bool *functions, double share,
                            struct base_error *error)
{
    struct call_times_account account;
    struct finder finder = {.slowest = slowest,
                            .part = part,
                            .functions = functions,
                            .within = calloc(calls->functions.count + 1, sizeof *finder.within)};
    *slowest = (struct call_times_slowest){0};
    const struct call_times_visitor first = {.leave = keep, .context = &finder};
    const struct call_times_visitor second = {.enter = enter, .leave = leave, .context = &finder};
    int status = call_times_walk(calls, &first, &account, error);
    if (status == 0)
        choose(slowest, share);
    if (status == 0 && finder.within)
        status = call_times_walk(calls, &second, &account, error);
    if (status == 0 && (finder.no_memory || !finder.within || !sort_within(&finder, calls->functions.count)))
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the slowest calls");
    free(finder.within);
    if (status != 0)
        call_times_slowest_free(slowest);
    return status;
}

void call_times_slowest_free(struct call_times_slowest *slowest)
{
    base_vector_free(&slowest->calls.vector);
    base_vector_free(&slowest->within.vector);
    *slowest = (struct call_times_slowest){0};
}
