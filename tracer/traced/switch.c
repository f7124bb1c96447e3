// SPDX-License-Identifier: Apache-2.0
// Functions that have become too frequent, from now on: the thunk that writes events begins with a jump to one that
// counts, so that nothing is missed between the two. Of those that are thinned the second goes on in the first for some
// of the calls.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/traced/inside.h"

static void add_switch(struct traced_install *work, size_t i, uint64_t at, const struct calls_thunk *thunk)
{
    struct traced_function *function = &work->process->functions.items[work->ids[i]];
    const int64_t distance = (int64_t)(at - (function->thunk + CALLS_JUMP_BYTES));
    const int32_t near = (int32_t)distance;
    if (near != distance)
        return;
    struct patch_site *site = &work->sites[work->site_count++];
    *site = (struct patch_site){.address = function->thunk,
                                .moved = at,
                                .thunk = at,
                                .restart_end = at,
                                .thunk_end = at + thunk->size_bytes,
                                .function = function->thunk,
                                .function_end = function->thunk + CALLS_JUMP_BYTES,
                                .id = work->ids[i],
                                .size = CALLS_JUMP_BYTES,
                                .boundary_count = 1};
    memcpy(site->original, function->thunk_begin, CALLS_JUMP_BYTES);
    site->patched[0] = 0xe9;
    memcpy(site->patched + 1, &near, sizeof near);
    function->mask_address = thunk->mask_at ? at + thunk->mask_at : 0;
}

static int switch_in_module(struct traced_install *work, struct base_error *error)
{
    if (traced_map_block(work, error) != 0)
        return -1;
    uint64_t at = QUT_CALLS_BLOCK_CODE_AT;
    for (size_t i = 0; i < work->count; i++) {
        struct calls_thunk thunk;
        at = traced_aligned(at, QUT_CALLS_THUNK_ALIGNMENT);
        if (!traced_make_thunk(work, i, work->block + at, &thunk) || thunk.size_bytes > work->traps_at - at)
            continue;
        memcpy(work->code + at, thunk.bytes, thunk.size_bytes);
        add_switch(work, i, work->block + at, &thunk);
        at += thunk.size_bytes;
    }
    if (traced_write_block(work, error) != 0)
        return -1;
    return traced_put_in(work, error);
}

static bool *is_switched(struct traced_function *function, bool is_thinned)
{
    return is_thinned ? &function->is_thinned : &function->is_counted;
}

static void note_first(uint64_t *count, char *first, size_t size, const struct traced_module *module,
                       const struct traced_function *function)
{
    if (!(*count)++)
        snprintf(first, size, "%s", calls_plan_readable(module->plan, &module->plan->functions[function->index]));
}

static void note_switches(struct traced_install *work, bool is_thinned)
{
    struct traced_process *process = work->process;
    struct traced_result *result = &process->result;
    for (size_t i = 0; i < work->count; i++)
        *is_switched(&process->functions.items[work->ids[i]], is_thinned) = false;
    for (size_t i = 0; i < work->site_count; i++) {
        const struct patch_site *site = &work->sites[i];
        struct traced_function *function = &process->functions.items[site->id];
        struct base_error error = {0};
        if (site->state != PATCH_IN)
            continue;
        *is_switched(function, is_thinned) = true;
        if (is_thinned)
            note_first(&result->thinned, result->first_thinned, sizeof result->first_thinned, work->module, function);
        else
            note_first(&result->over_budget, result->first_over_budget, sizeof result->first_over_budget, work->module,
                       function);
        if (traced_tell_function(process, site->id, &error) != 0)
            traced_note_error(process, &error);
    }
}

void traced_switch(struct traced_process *process, const uint32_t *ids, size_t count, bool is_thinned)
{
    for (uint32_t module = 0; module < process->modules.count; module++) {
        struct base_error error = {0};
        struct traced_install work = {.process = process,
                                      .module = &process->modules.items[module],
                                      .module_index = module,
                                      .wanted = calloc(count, sizeof *work.wanted),
                                      .ids = calloc(count, sizeof *work.ids)};
        for (size_t i = 0; work.wanted && work.ids && i < count; i++) {
            struct traced_function *function = &process->functions.items[ids[i]];
            if (function->module != module)
                continue;
            *is_switched(function, is_thinned) = true; // for the making of thunks
            work.ids[work.count] = ids[i];
            work.wanted[work.count++] = function->index;
        }
        if (work.count) {
            switch_in_module(&work, &error); // what fails stays as it is
            note_switches(&work, is_thinned);
        }
        free(work.wanted);
        free(work.ids);
        free(work.code);
        free(work.sites);
    }
}
