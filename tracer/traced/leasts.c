// SPDX-License-Identifier: Apache-2.0
// How long a call of each function has to be for the file: one duration for all, and others for some.
#include <stdlib.h>
#include <string.h>

#include "tracer/traced/clock.h"
#include "tracer/traced/inside.h"

struct traced_leasts {
    struct traced_least_of {
        struct calls_patterns pattern; // one
        uint64_t ticks;
    } items[TRACED_LEASTS_MAX];
};

int traced_leasts_begin(struct traced_process *process, struct base_error *error)
{
    const struct traced_options *options = process->options;
    const uint64_t second_ns = 1000000000;
    if (!options->least_ns && !options->least_count)
        return 0;
    process->leasts = calloc(1, sizeof *process->leasts);
    if (!process->leasts)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    const double ticks_a_ns = (double)traced_ticks_of(second_ns) / (double)second_ns;
    process->least_ticks = (uint64_t)((double)options->least_ns * ticks_a_ns);
    for (size_t i = 0; i < options->least_count; i++) {
        struct traced_least_of *least = &process->leasts->items[i];
        least->ticks = (uint64_t)((double)options->leasts[i].ns * ticks_a_ns);
        char *text = strndup(options->leasts[i].pattern, options->leasts[i].pattern_bytes);
        const int status = text ? calls_patterns_add(&least->pattern, text, false, error)
                                : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        free(text);
        if (status != 0)
            return -1;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t mark(struct traced_process *process, uint32_t module, const struct calls_selection *meant,
                     uint64_t ticks)
{
    uint64_t marked = 0;
    for (size_t i = 1; i < process->functions.count; i++) {
        struct traced_function *function = &process->functions.items[i];
        if (function->module != module ||
            !bsearch(&function->index, meant->items, meant->count, sizeof *meant->items, by_number))
            continue;
        function->least_ticks = ticks;
        marked++;
    }
    return marked;
}

// Their events are not read before.
void traced_leasts_mark(struct traced_process *process, uint32_t module, const char *name)
{
    for (size_t i = 0; process->leasts && i < process->options->least_count; i++) {
        struct traced_least_of *least = &process->leasts->items[i];
        struct calls_selection meant = {.count = 0};
        struct base_error unused = {0};
        if (calls_patterns_want_module(&least->pattern, name) &&
            calls_patterns_select(&least->pattern, name, process->modules.items[module].plan, &meant, &unused) == 0 &&
            meant.count)
            process->result.least_matches[i] += mark(process, module, &meant, least->ticks);
        calls_selection_free(&meant);
    }
}

void traced_leasts_free(struct traced_process *process)
{
    for (size_t i = 0; process->leasts && i < TRACED_LEASTS_MAX; i++)
        calls_patterns_free(&process->leasts->items[i].pattern);
    free(process->leasts);
    process->leasts = NULL;
}
