// SPDX-License-Identifier: Apache-2.0
// Functions that are called more often than was allowed make no events any more; their calls are counted, exactly.
#include <stdio.h>
#include <stdlib.h>

#include "tracer/traced/inside.h"

void traced_budget_look(struct traced_process *process, uint64_t elapsed_ns)
{
    const uint64_t ns_per_s = 1000000000;
    uint32_t *over = NULL;
    size_t count = 0;
    for (uint32_t id = 1; id < process->functions.count; id++) {
        struct traced_function *function = &process->functions.items[id];
        const uint64_t entered = function->entered_now;
        function->entered_now = 0;
        if (!function->address || function->is_counted || id >= process->header.cell_count ||
            (double)entered * (double)ns_per_s <= (double)process->options->budget_hz * (double)elapsed_ns)
            continue;
        if (!over)
            over = calloc(process->functions.count, sizeof *over);
        if (!over)
            return;
        over[count++] = id;
    }
    if (count)
        traced_install_counted(process, over, count);
    free(over);
}
