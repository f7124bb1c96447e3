// SPDX-License-Identifier: Apache-2.0
// Programs that run in the tool: begin, timer, end.
#include <unistd.h>

#include "base/clock_inline.h"
#include "bytecode/run.h"
#include "tracer/probe/prometheus.h"
#include "tracer/probe/show.h"
#include "tracer/probing/inside.h"

struct host {
    struct bytecode_host host;
    struct probing *probing;
};

void probing_show_map(struct probing *probing, uint32_t map)
{
    const struct probing_options *options = &probing->options;
    struct probe_stacks *stacks = &probing->noted.stacks;
    if (options->form != PROBING_JSON) {
        probing->has_failed |= probe_show_map(probing->running, options->script, &probing->maps, map, stacks) != 0;
        return;
    }
    struct base_json json = {.stream = options->out};
    probing->has_failed |= probe_show_map_json(&json, options->script, &probing->maps, map, stacks) != 0;
    fputc('\n', options->out);
}

void probing_show_all(struct probing *probing)
{
    const struct probing_options *options = &probing->options;
    if (options->form == PROBING_PROMETHEUS)
        probing->has_failed |=
            probe_show_prometheus(options->out, options->script, &probing->maps, &probing->noted.stacks) != 0;
    for (uint32_t i = 0; options->form != PROBING_PROMETHEUS && i < probing->image.header->map_count; i++)
        if (!probe_map_is_hidden(&options->script->maps.items[i]) || bytecode_maps_lost(&probing->maps, i))
            probing_show_map(probing, i);
}

static uint64_t call(struct bytecode_host *host, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    struct probing *probing = ((struct host *)(void *)host)->probing;
    const uint64_t *words = (const uint64_t *)(uintptr_t)b;
    const uint32_t number = (uint32_t)a;
    switch (helper) {
    case QUT_PROBE_AGGREGATE: bytecode_maps_aggregate(&probing->maps, number, words, c); return 0;
    case QUT_PROBE_LOOKUP: return bytecode_maps_lookup(&probing->maps, number, words);
    case QUT_PROBE_EMIT: probing_show_record(probing, number, words); return 0;
    case QUT_PROBE_PRINT: probing_show_map(probing, number); return 0;
    case QUT_PROBE_CLEAR: bytecode_maps_clear(&probing->maps, number); return 0;
    default: return 0;
    }
}

void probing_run(struct probing *probing, uint32_t program)
{
    struct host host = {{call}, probing};
    const uint64_t fields[QUT_PROBE_FIELD_END] = {
        [QUT_PROBE_TIME] = base_clock_now_ns(), [QUT_PROBE_PID] = (uint64_t)getpid()};
    bytecode_run(probing->image.instructions + probing->image.programs[program].first_instruction, fields, &host.host);
}

void probing_run_all(struct probing *probing, enum qut_probe_kind kind)
{
    for (size_t i = 0; i < probing->options.script->places.count; i++)
        if (probing->options.script->places.items[i].kind == kind)
            probing_run(probing, probing->options.script->places.items[i].program);
}
