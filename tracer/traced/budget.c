// SPDX-License-Identifier: Apache-2.0
// Functions that are called more often than was allowed make no events any more, or events of some of their calls only;
// their calls are counted, exactly.
#include <stdio.h>
#include <stdlib.h>

#include "tracer/traced/inside.h"

enum { THINNING_LOG2_MAX = 20 };
static const uint64_t ns_per_s = 1000000000;

static bool is_over(uint64_t entered, uint64_t hz, uint64_t elapsed_ns)
{
    return (double)entered * (double)ns_per_s > (double)hz * (double)elapsed_ns;
}

// The least with which no more than wanted of so many calls are recorded.
static uint32_t log2_for(uint64_t calls, uint64_t hz, uint64_t elapsed_ns)
{
    uint32_t log2 = 0;
    while (log2 < THINNING_LOG2_MAX && is_over(calls >> log2, hz, elapsed_ns))
        log2++;
    return log2;
}

// How often a thinned one is called is known by what is recorded of it. That becomes less at once, and more by and by,
// as the next burst may be near.
static void adjust(struct traced_process *process, struct traced_function *function, uint64_t entered,
                   uint64_t elapsed_ns)
{
    struct base_error unused = {0};
    const uint32_t now = function->thinning_log2;
    const uint32_t wanted = log2_for(entered << now, process->options->thin_hz, elapsed_ns);
    const uint32_t next = wanted > now ? wanted : wanted + 1 < now ? now - 1 : now;
    const uint32_t mask = calls_thinning_mask(next);
    if (next != now && patch_write(process->patch, function->mask_address, &mask, sizeof mask, &unused) == 0)
        function->thinning_log2 = next;
}

// The id of events of its that are recorded while it is thinned: those are told apart from the ones before, since the
// count has them too.
static bool needs_id(struct traced_process *process, uint32_t id)
{
    if (process->functions.items[id].thinned_id)
        return true;
    const size_t next = process->functions.count;
    struct traced_function *other = next <= QUT_CALLS_ID_MAX ? BASE_ADD(&process->functions) : NULL;
    if (!other)
        return false;
    *other = (struct traced_function){.module = UINT32_MAX, .same_as = id};
    process->functions.items[id].thinned_id = (uint32_t)next;
    return true;
}

void traced_budget_look(struct traced_process *process, uint64_t elapsed_ns)
{
    const uint64_t thin_hz = process->options->thin_hz, hz = thin_hz ? thin_hz : process->options->budget_hz;
    const size_t function_count = process->functions.count;
    uint32_t *over = NULL;
    size_t count = 0;
    for (uint32_t id = 1; id < function_count; id++) {
        struct traced_function *function = &process->functions.items[id];
        const uint64_t entered = function->entered_now;
        function->entered_now = 0;
        if (!function->address || function->is_counted || id >= process->header.cell_count)
            continue;
        if (function->is_thinned)
            adjust(process, function, entered, elapsed_ns);
        if (function->is_thinned || !is_over(entered, hz, elapsed_ns) || (thin_hz && function->is_caller))
            continue;
        if (!over)
            over = calloc(function_count, sizeof *over);
        if (!over)
            return;
        function->thinning_log2 = thin_hz ? log2_for(entered, hz, elapsed_ns) : 0;
        if (!thin_hz || needs_id(process, id))
            over[count++] = id;
    }
    if (count)
        traced_switch(process, over, count, thin_hz != 0);
    free(over);
}
