// SPDX-License-Identifier: Apache-2.0
// Children of fork: they go on in their parent's code, thunks included, and have rings of their own since their first
// moment. What their events' ids mean, and what is to be put back, is their parent's: it only grows, or is marked as
// gone, so that what it has now covers what it had then.
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tracer/traced/inside.h"

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
}

static int copy_modules(struct traced_process *process, const struct traced_process *parent, struct base_error *error)
{
    if (!BASE_RESERVE(&process->modules, parent->modules.count))
        return no_memory(error);
    for (size_t i = 0; i < parent->modules.count; i++) {
        struct traced_module module = parent->modules.items[i];
        module.path = strdup(module.path);
        if (!module.path)
            return no_memory(error);
        calls_plan_share(module.plan);
        *BASE_ADD(&process->modules) = module; // there is room
    }
    return 0;
}

static int copy(struct traced_process *process, struct traced_process *parent, struct base_error *error)
{
    if (parent->has_failed)
        return base_fail(error, BASE_ERR_IO, "", 0, "its parent could not be traced");
    if (!BASE_RESERVE(&process->functions, parent->functions.count))
        return no_memory(error);
    memcpy(process->functions.items, parent->functions.items,
           parent->functions.count * sizeof *process->functions.items);
    process->functions.count = parent->functions.count;
    process->maps_hash = parent->maps_hash;
    return copy_modules(process, parent, error);
}

// One that ended at once left no code to look at: then its children have that of its own parent.
static int inherit_sites(struct traced_process *process, struct base_error *error)
{
    int status = 0;
    for (struct traced_process *from = process->begin.parent;
         process->patch && from && status == 0 && !patch_site_count(process->patch); from = from->begin.parent) {
        pthread_mutex_lock(&from->code_lock);
        if (from->patch)
            status = patch_inherit(process->patch, from->patch, error);
        pthread_mutex_unlock(&from->code_lock);
    }
    return status;
}

static int tell_modules(struct traced_process *process, struct base_error *error)
{
    for (size_t i = 0; i < process->modules.count; i++) {
        struct traced_module *module = &process->modules.items[i];
        const struct collect_calls_module written = {.path = module->path,
                                                     .bias = module->bias,
                                                     .build_id = module->build_id,
                                                     .build_id_bytes = module->build_id_bytes};
        if (module->plan && collect_calls_module(process->writer, &written, &module->number, error) != 0)
            return -1;
    }
    return 0;
}

static int tell_functions(struct traced_process *process, struct base_error *error)
{
    for (uint32_t id = 1; id < process->functions.count; id++) {
        struct traced_function *function = &process->functions.items[id];
        function->entered_now = function->short_calls = function->thinned_enters = 0;
        if (process->patch && function->address && !patch_is_in(process->patch, function->address))
            function->address = 0;
        // It was entered too often for its parent's budget, perhaps since.
        if (process->patch && function->is_counted && !process->options->count_only)
            function->is_counted = patch_is_in(process->patch, function->thunk);
        if (process->patch && function->is_thinned)
            function->is_thinned = patch_is_in(process->patch, function->thunk);
        if (function->is_told && traced_tell_function(process, id, error) != 0)
            return -1;
    }
    return 0;
}

int traced_inherit(struct traced_process *process, struct base_error *error)
{
    struct traced_process *parent = process->begin.parent;
    pthread_mutex_lock(&parent->code_lock);
    while (!parent->has_begun)
        pthread_cond_wait(&parent->has_begun_event, &parent->code_lock);
    const int status = copy(process, parent, error);
    if (status == 0)
        traced_probe_inherit(process, parent);
    pthread_mutex_unlock(&parent->code_lock);
    process->result.forked = 1;
    struct base_error unused = {0}; // one that has ended already went on with its parent's masks
    if (status == 0)
        traced_probe_tell(process, &unused);
    return status == 0 && inherit_sites(process, error) == 0 && tell_modules(process, error) == 0
               ? tell_functions(process, error)
               : -1;
}

// ---- those that have told nothing

// A block of thunks begins with the stub's address, which is another one in each process that did not come by fork.
bool traced_is_copy(const struct traced_process *parent, pid_t pid)
{
    for (size_t i = 0; parent->patch && i < parent->modules.count; i++) {
        const uint64_t at = parent->modules.items[i].block + QUT_CALLS_BLOCK_ENTER_AT;
        uint64_t stub = 0;
        if (!parent->modules.items[i].block)
            continue;
        const struct iovec here = {&stub, sizeof stub}, there = {(void *)(uintptr_t)at, sizeof stub};
        if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof stub && stub == parent->header.enter_stub)
            return true;
    }
    return false;
}

void traced_sweep(const struct traced_process *parent, pid_t pid, struct traced_result *result)
{
    struct patch_figures figures = {.put_in = 0};
    struct base_error error = {0};
    struct patch_process *patch = patch_open(pid, &error);
    int status = -1;
    if (patch) {
        traced_use_stub(parent, patch);
        status = patch_inherit(patch, parent->patch, &error);
    }
    const size_t count = patch ? patch_site_count(patch) : 0;
    if (status == 0 && count)
        status = traced_take_all_out(patch, pid, &figures, &error);
    if (status == 0 && count) {
        result->swept++;
        result->put_back += figures.taken_out;
        result->returns_put_back += figures.restored_returns;
        result->stops++;
        result->end_stop_ns += figures.stopped_ns;
    } else {
        result->not_put_back += count;
    }
    patch_close(patch);
}
