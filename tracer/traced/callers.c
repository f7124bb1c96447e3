// SPDX-License-Identifier: Apache-2.0
// Programs of probes that run in calls out of some functions only: where these functions are, for the agent
// (formats/qut_probe_live.h).
#include <stdlib.h>
#include <string.h>

#include "tracer/traced/inside.h"
#include "tracer/traced/probe.h"

int traced_callers_begin(struct traced_process *process, struct base_error *error)
{
    const struct traced_probe *probe = process->options->probe;
    for (size_t i = 0; i < QUT_PROBE_PROGRAMS_MAX; i++)
        if (probe->callers[i] && calls_patterns_add(&process->caller_patterns[i], probe->callers[i], false, error) != 0)
            return -1;
    process->callers = (struct qut_probe_callers *)(void *)((char *)process->masks + QUT_PROBE_LIVE_MASKS_BYTES);
    return 0;
}

bool traced_callers_want(const struct traced_process *process, const char *module)
{
    for (size_t i = 0; i < QUT_PROBE_PROGRAMS_MAX; i++)
        if (calls_patterns_want_module(&process->caller_patterns[i], module))
            return true;
    return false;
}

// ---- a module's

// The programs of each function of the plan, bits; malloc's. NULL: no memory. Of callers those are meant, too, that
// cannot be probed themselves.
static uint32_t *find_programs(struct traced_process *process, const struct traced_module *module, uint32_t *count)
{
    uint32_t *programs = calloc((size_t)module->plan->header->function_count + 1, sizeof *programs);
    bool is_good = programs != NULL;
    for (size_t i = 0; is_good && i < QUT_PROBE_PROGRAMS_MAX; i++) {
        struct calls_selection fit = {.count = 0};
        struct base_error unused = {0};
        if (!calls_patterns_want_module(&process->caller_patterns[i], module->name))
            continue;
        is_good = calls_patterns_select(&process->caller_patterns[i], module->name, module->plan, &fit, &unused) == 0;
        for (size_t k = 0; is_good && k < fit.count; k++)
            programs[fit.items[k]] |= UINT32_C(1) << i;
        for (size_t k = 0; is_good && k < fit.refused.count; k++)
            programs[fit.refused.items[k]] |= UINT32_C(1) << i;
        process->result.caller_matches[i] = process->caller_patterns[i].items[0].functions;
        calls_selection_free(&fit);
    }
    *count = 0;
    for (uint32_t i = 0; is_good && i < module->plan->header->function_count; i++)
        *count += programs[i] != 0;
    if (is_good)
        return programs;
    free(programs);
    return NULL;
}

// Room for so many, of a module that is gone, or behind all. NULL: there is none.
static struct qut_probe_caller_module *take_room(struct traced_process *process, uint32_t count)
{
    struct qut_probe_callers *callers = process->callers;
    const uint32_t used = callers->module_count;
    for (uint32_t i = 0; i < used; i++)
        if (callers->modules[i].end == 0 && process->caller_rooms[i] >= count)
            return &callers->modules[i];
    const uint32_t first = used ? callers->modules[used - 1].first + process->caller_rooms[used - 1] : 0;
    if (used == QUT_PROBE_LIVE_CALLER_MODULES_MAX || count > QUT_PROBE_LIVE_CALLERS_MAX - first)
        return NULL;
    callers->modules[used] = (struct qut_probe_caller_module){.first = first};
    process->caller_rooms[used] = count;
    return &callers->modules[used];
}

static void write_module(struct traced_process *process, const struct traced_module *module, const uint32_t *programs,
                         struct qut_probe_caller_module *room, uint32_t count)
{
    struct qut_probe_callers *callers = process->callers;
    struct qut_probe_caller *items = &callers->items[room->first];
    uint32_t written = 0;
    for (uint32_t i = 0; written < count; i++) {
        const struct qut_plan_function *function = &module->plan->functions[i];
        if (programs[i])
            items[written++] =
                (struct qut_probe_caller){module->bias + function->entry_vaddr, function->size_bytes, programs[i]};
    }
    room->count = count;
    room->begin = items[0].begin;
    __atomic_store_n(&room->end, items[count - 1].begin + items[count - 1].size_bytes, __ATOMIC_RELEASE);
    const uint32_t used = (uint32_t)(room - callers->modules) + 1;
    if (used > callers->module_count)
        __atomic_store_n(&callers->module_count, used, __ATOMIC_RELEASE);
}

int traced_callers_add(struct traced_process *process, uint32_t module, struct base_error *error)
{
    const struct traced_module *of = &process->modules.items[module];
    uint32_t count;
    if (!process->callers || !traced_callers_want(process, of->name))
        return 0;
    uint32_t *programs = find_programs(process, of, &count);
    if (!programs)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    struct qut_probe_caller_module *room = count ? take_room(process, count) : NULL;
    if (room)
        write_module(process, of, programs, room, count);
    else
        process->result.callers_left_out += count;
    free(programs);
    return 0;
}

void traced_callers_forget(struct traced_process *process, uint32_t module)
{
    const struct traced_module *of = &process->modules.items[module];
    struct qut_probe_callers *callers = process->callers;
    if (!callers || !of->plan)
        return;
    const uint64_t begin = of->bias + of->plan->header->text_start, end = of->bias + of->plan->header->text_end;
    for (uint32_t i = 0; i < callers->module_count; i++)
        if (callers->modules[i].begin >= begin && callers->modules[i].begin < end)
            __atomic_store_n(&callers->modules[i].end, 0, __ATOMIC_RELEASE);
}

// ---- the whole

void traced_callers_inherit(struct traced_process *process, const struct traced_process *parent)
{
    const struct qut_probe_callers *from = parent->callers;
    if (!process->callers || !from || !from->module_count)
        return;
    const struct qut_probe_caller_module *last = &from->modules[from->module_count - 1];
    memcpy(process->caller_rooms, parent->caller_rooms, sizeof process->caller_rooms);
    memcpy(process->callers->items, from->items,
           (last->first + (size_t)parent->caller_rooms[from->module_count - 1]) * sizeof *from->items);
    memcpy(process->callers->modules, from->modules, sizeof from->modules);
    process->callers->module_count = from->module_count;
}

void traced_callers_free(struct traced_process *process)
{
    for (size_t i = 0; i < QUT_PROBE_PROGRAMS_MAX; i++)
        calls_patterns_free(&process->caller_patterns[i]);
    process->callers = NULL;
}
