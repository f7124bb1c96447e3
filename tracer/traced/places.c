// SPDX-License-Identifier: Apache-2.0
// Places within functions, at which programs of probes run.
#include <stdio.h>
#include <stdlib.h>

#include "tracer/calls/places.h"
#include "tracer/traced/finding.h"
#include "tracer/traced/probe.h"

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
}

bool traced_places_want(const struct traced_process *process, const char *module)
{
    for (size_t i = 0; i < process->place_patterns.count; i++)
        if (calls_patterns_want_module(&process->place_patterns.items[i], module))
            return true;
    return false;
}

int traced_places_begin(struct traced_process *process, struct base_error *error)
{
    const struct traced_probe *probe = process->options->probe;
    for (size_t i = 0; i < probe->place_count; i++) {
        struct calls_patterns *patterns = BASE_ADD(&process->place_patterns);
        if (!patterns)
            return no_memory(error);
        *patterns = (struct calls_patterns){.count = 0};
        if (calls_patterns_add(patterns, probe->places[i].pattern, false, error) != 0)
            return -1;
    }
    return 0;
}

void traced_places_free(struct traced_process *process)
{
    for (size_t i = 0; i < process->place_patterns.count; i++)
        calls_patterns_free(&process->place_patterns.items[i]);
    base_vector_free(&process->place_patterns.vector);
}

static void note_refusal(struct traced_process *process, const struct traced_module *module, uint32_t function,
                         uint64_t vaddr, const char *why)
{
    struct traced_result *result = &process->result;
    const struct qut_plan_function *of = &module->plan->functions[function];
    if (!result->places_refused++)
        snprintf(result->first_place_refused, sizeof result->first_place_refused, "%.60s+0x%llx: %s",
                 calls_plan_readable(module->plan, of), (unsigned long long)(vaddr - of->entry_vaddr), why);
}

// Of two at the same address both programs run.
int traced_places_add(struct traced_finding *found, uint32_t function, uint64_t vaddr, uint32_t programs,
                      struct base_error *error)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].vaddr == vaddr) {
            found->items[i].programs |= programs;
            return 0;
        }
    struct traced_wanted *wanted = BASE_ADD(found);
    if (!wanted)
        return no_memory(error);
    *wanted = (struct traced_wanted){vaddr, function, programs};
    return 0;
}

static int find_offset(struct traced_finding *found, size_t index, struct base_error *error)
{
    struct traced_process *process = found->process;
    const struct calls_plan *plan = found->module->plan;
    const struct traced_place *place = &process->options->probe->places[index];
    struct calls_selection fit = {.count = 0};
    int status = calls_patterns_select(&process->place_patterns.items[index], found->module->name, plan, &fit, error);
    process->result.places_seen[index].matches += fit.count + fit.refused.count;
    for (size_t n = 0; status == 0 && n < fit.count; n++)
        status = traced_places_add(found, fit.items[n], plan->functions[fit.items[n]].entry_vaddr + place->offset_bytes,
                                   place->programs, error);
    for (size_t n = 0; status == 0 && n < fit.refused.count; n++) {
        const struct qut_plan_function *function = &plan->functions[fit.refused.items[n]];
        note_refusal(process, found->module, fit.refused.items[n], function->entry_vaddr + place->offset_bytes,
                     calls_refusal_text((enum qut_plan_refusal)function->refusal));
    }
    calls_selection_free(&fit);
    return status;
}

static int find(struct traced_finding *found, struct base_error *error)
{
    const struct traced_process *process = found->process;
    int status = 0;
    for (size_t i = 0; status == 0 && i < process->place_patterns.count; i++)
        if (calls_patterns_want_module(&process->place_patterns.items[i], found->module->name))
            status = process->options->probe->places[i].file ? traced_places_find_line(found, i, error)
                                                             : find_offset(found, i, error);
    return status;
}

// Those that can be get numbers, and stand in front then.
static int take_ids(struct traced_install *work, const struct traced_finding *found, struct calls_places *places,
                    struct base_error *error)
{
    struct traced_process *process = work->process;
    for (size_t i = 0; i < found->count; i++) {
        const struct traced_wanted *wanted = &found->items[i];
        const struct qut_plan_function *of = &work->module->plan->functions[wanted->function];
        enum calls_place_refusal refusal = places->items[i].refusal;
        if (wanted->vaddr - of->entry_vaddr >= of->size_bytes)
            refusal = CALLS_PLACE_NO_CODE;
        if (refusal != CALLS_PLACE_OK || process->functions.count > QUT_CALLS_ID_MAX) {
            note_refusal(process, work->module, wanted->function, wanted->vaddr, calls_place_refusal_text(refusal));
            continue;
        }
        struct traced_function *function = BASE_ADD(&process->functions);
        if (!function)
            return no_memory(error);
        *function = (struct traced_function){.module = work->module_index, .index = wanted->function};
        places->items[work->count] = places->items[i];
        work->ids[work->count] = (uint32_t)process->functions.count - 1;
        process->masks[work->ids[work->count++]] = wanted->programs;
    }
    return 0;
}

static int put_in(struct traced_install *work, struct base_error *error)
{
    int status = traced_make_block(work, error);
    status = status == 0 ? traced_put_in(work, error) : status;
    if (!work->module->block) {
        work->module->block = work->block;
        work->module->block_bytes = work->block_bytes;
    }
    for (size_t i = 0; status == 0 && i < work->site_count; i++) {
        const struct patch_site *site = &work->sites[i];
        struct traced_function *function = &work->process->functions.items[site->id];
        if (site->state == PATCH_IN) {
            function->address = site->address;
            work->process->result.places++;
        } else {
            note_refusal(work->process, work->module, function->index, site->address - work->module->bias,
                         patch_state_text(site->state));
        }
    }
    return status;
}

int traced_places_install(struct traced_process *process, uint32_t module, const char *file_path,
                          struct base_error *error)
{
    struct traced_finding found = {
        .process = process, .module = &process->modules.items[module], .file_path = file_path};
    if (!traced_places_want(process, found.module->name))
        return 0;
    if (!process->header.place_stub)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "places within functions are not known on this machine");
    int status = find(&found, error);
    struct traced_install work = {
        .process = process, .module = &process->modules.items[module], .module_index = module};
    struct calls_places places = {calloc(found.count + 1, sizeof *places.items), found.count};
    work.ids = calloc(found.count + 1, sizeof *work.ids);
    if (status == 0 && (!places.items || !work.ids))
        status = no_memory(error);
    for (size_t i = 0; status == 0 && i < found.count; i++)
        places.items[i].vaddr = found.items[i].vaddr;
    if (status == 0 && found.count)
        status = calls_places_find(file_path, &places, error);
    work.places = places.items;
    if (status == 0)
        status = take_ids(&work, &found, &places, error);
    if (status == 0 && work.count)
        status = put_in(&work, error);
    free(places.items);
    free(work.ids);
    free(work.code);
    free(work.sites);
    base_vector_free(&found.vector);
    return status;
}
