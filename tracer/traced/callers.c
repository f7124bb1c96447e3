// SPDX-License-Identifier: Apache-2.0
// Programs of probes that run in calls out of some functions only: where these functions are, for the agent
// (formats/qut_probe_live.h).
#include <stdlib.h>
#include <string.h>

#include "tracer/calls/parts.h"
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

struct finding {
    struct traced_process *process;
    const struct traced_module *module;
    struct base_error *error;
    BASE_VECTOR(struct qut_probe_caller);
};

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
}

static int add(struct finding *found, uint64_t vaddr, uint32_t size_bytes, uint32_t programs)
{
    struct qut_probe_caller *caller = BASE_ADD(found);
    if (!caller)
        return no_memory(found->error);
    *caller = (struct qut_probe_caller){found->module->bias + vaddr, size_bytes, programs};
    return 0;
}

// Of callers those are meant, too, that cannot be probed themselves.
static int find_functions(struct finding *found)
{
    struct traced_process *process = found->process;
    const struct calls_plan *plan = found->module->plan;
    uint32_t *programs = calloc((size_t)plan->header->function_count + 1, sizeof *programs);
    int status = programs ? 0 : no_memory(found->error);
    for (size_t i = 0; status == 0 && i < QUT_PROBE_PROGRAMS_MAX; i++) {
        struct calls_patterns *pattern = &process->caller_patterns[i];
        struct calls_selection fit = {.count = 0};
        if (!calls_patterns_want_module(pattern, found->module->name))
            continue;
        status = calls_patterns_select(pattern, found->module->name, plan, &fit, found->error);
        for (size_t k = 0; status == 0 && k < fit.count; k++)
            programs[fit.items[k]] |= UINT32_C(1) << i;
        for (size_t k = 0; status == 0 && k < fit.refused.count; k++)
            programs[fit.refused.items[k]] |= UINT32_C(1) << i;
        process->result.caller_matches[i] = pattern->items[0].functions;
        calls_selection_free(&fit);
    }
    for (uint32_t i = 0; status == 0 && i < plan->header->function_count; i++)
        if (programs[i])
            status = add(found, plan->functions[i].entry_vaddr, plan->functions[i].size_bytes, programs[i]);
    free(programs);
    return status;
}

// A part of a function that the compiler has put elsewhere.
static int take_part(void *context, const char *name, uint64_t vaddr, uint32_t size_bytes)
{
    struct finding *found = context;
    uint32_t programs = 0;
    for (size_t i = 0; i < QUT_PROBE_PROGRAMS_MAX; i++) {
        const struct calls_patterns *pattern = &found->process->caller_patterns[i];
        const int fits = pattern->count ? calls_patterns_fit_name(pattern, found->module->name, name) : 0;
        if (fits < 0)
            return no_memory(found->error);
        programs |= fits ? UINT32_C(1) << i : 0;
    }
    return programs ? add(found, vaddr, size_bytes, programs) : 0;
}

static int by_address(const void *a, const void *b)
{
    const struct qut_probe_caller *one = a, *other = b;
    return one->begin < other->begin ? -1 : one->begin > other->begin;
}

// Room for so many, of a module that is gone, or behind all. NULL: there is none.
static struct qut_probe_caller_module *take_room(struct traced_process *process, size_t count)
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
    process->caller_rooms[used] = (uint32_t)count;
    return &callers->modules[used];
}

static void write_module(struct traced_process *process, const struct finding *found,
                         struct qut_probe_caller_module *room)
{
    struct qut_probe_callers *callers = process->callers;
    const struct qut_probe_caller *last = &found->items[found->count - 1];
    memcpy(&callers->items[room->first], found->items, found->count * sizeof *found->items);
    room->count = (uint32_t)found->count;
    room->begin = found->items[0].begin;
    __atomic_store_n(&room->end, last->begin + last->size_bytes, __ATOMIC_RELEASE);
    const uint32_t used = (uint32_t)(room - callers->modules) + 1;
    if (used > callers->module_count)
        __atomic_store_n(&callers->module_count, used, __ATOMIC_RELEASE);
}

int traced_callers_add(struct traced_process *process, uint32_t module, const char *file_path, struct base_error *error)
{
    const struct traced_module *of = &process->modules.items[module];
    if (!process->callers || !traced_callers_want(process, of->name))
        return 0;
    struct finding found = {.process = process, .module = of, .error = error, .count = 0};
    int status = find_functions(&found);
    if (status == 0 && found.count)
        status = calls_parts_each(file_path, take_part, &found, error);
    const bool is_wanted = status == 0 && found.count;
    struct qut_probe_caller_module *room = is_wanted ? take_room(process, found.count) : NULL;
    if (room) {
        qsort(found.items, found.count, sizeof *found.items, by_address);
        write_module(process, &found, room);
    } else if (is_wanted) {
        process->result.callers_left_out += found.count;
    }
    base_vector_free(&found.vector);
    return status;
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
