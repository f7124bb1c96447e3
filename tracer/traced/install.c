// SPDX-License-Identifier: Apache-2.0
// Functions of a module become traced ones: thunks are made and written where nobody is yet, then all entries are
// exchanged in one stop.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracer/rescue/ledger.h"
#include "tracer/traced/inside.h"

enum { PAGE_BYTES = 4096 };

static const struct qut_plan_function *planned(const struct traced_install *work, size_t i)
{
    return work->places ? &work->places[i].function : &work->module->plan->functions[work->wanted[i]];
}

// ---- thunks

// A count of a function has a cell of its number, as far as there are cells.
bool traced_make_thunk(const struct traced_install *work, size_t i, uint64_t at, struct calls_thunk *thunk)
{
    const struct traced_process *process = work->process;
    const struct traced_function *function = &process->functions.items[work->ids[i]];
    const struct calls_thunk_place place = {.load_bias = work->module->bias,
                                            .thunk_address = at,
                                            .block_address = work->block,
                                            .function_id = work->ids[i],
                                            .is_counted = function->is_counted,
                                            .is_place = work->places != NULL,
                                            .thinned_id = function->is_thinned ? function->thinned_id : 0,
                                            .thinning_log2 = function->thinning_log2,
                                            .enter_thunk = function->thunk,
                                            .architecture = work->module->plan->header->architecture,
                                            .own_tls_offset = process->header.own_tls_offset};
    return calls_thunk_make(planned(work, i), &place, thunk);
}

// How much room they take: their sizes do not depend on where they stand.
static uint64_t sum_sizes(struct traced_install *work)
{
    uint64_t bytes = QUT_CALLS_BLOCK_CODE_AT;
    work->block = work->module->bias + work->module->plan->header->text_end; // somewhere near
    for (size_t i = 0; i < work->count; i++) {
        struct calls_thunk thunk;
        const bool is_made = traced_make_thunk(work, i, work->block + 4096, &thunk);
        bytes = traced_aligned(bytes, QUT_CALLS_THUNK_ALIGNMENT) +
                (is_made ? thunk.size_bytes : (size_t)QUT_CALLS_THUNK_BYTES_MAX);
    }
    work->traps_at = traced_aligned(bytes, sizeof(uint64_t));
    work->ledger_at = work->traps_at + work->trap_count * sizeof(struct qut_calls_trap);
    work->ledger_room = 2 * work->count; // those that go by way of padding have two
    return traced_aligned(work->ledger_at + rescue_ledger_bytes(work->ledger_room), PAGE_BYTES);
}

static void add_site(struct traced_install *work, size_t i, const struct calls_thunk *thunk, uint64_t at)
{
    const struct qut_plan_function *function = planned(work, i);
    const uint64_t entry = work->module->bias + function->entry_vaddr;
    const bool is_counted = work->process->functions.items[work->ids[i]].is_counted;
    const struct calls_thunk_place place = {.load_bias = work->module->bias,
                                            .thunk_address = at,
                                            .function_id = work->ids[i],
                                            .architecture = work->module->plan->header->architecture};
    struct calls_patch patch;
    if (!calls_patch_make(function, &place, &patch))
        return;
    for (unsigned piece = 0; piece < patch.piece_count; piece++) {
        // What stands in padding: nobody is there, and the function's own site answers for the thunk.
        const bool is_padding = piece + 1 < patch.piece_count;
        struct patch_site *site = &work->sites[work->site_count++];
        *site = (struct patch_site){.address = patch.pieces[piece].address,
                                    .moved = at + thunk->moved_at,
                                    .function = entry,
                                    .function_end = entry + function->size_bytes,
                                    .id = is_padding ? 0 : work->ids[i],
                                    .size = patch.pieces[piece].size_bytes,
                                    .boundary_count = is_padding ? 1 : thunk->boundary_count,
                                    .partner = piece ? (uint32_t)work->site_count - 1 : 0};
        memcpy(site->original, patch.pieces[piece].original, site->size);
        memcpy(site->patched, patch.pieces[piece].bytes, site->size);
        if (is_padding)
            continue;
        site->thunk = at;
        // A thunk that counts has counted at some instruction: whoever is in it stays there.
        site->restart_end = is_counted ? at : at + thunk->moved_at;
        if (work->places) // behind its first instruction the stack pointer is another one
            site->restart_end = at + 1;
        site->thunk_end = at + thunk->size_bytes;
        for (unsigned n = 0; n < thunk->boundary_count; n++)
            site->boundaries[n] = (struct patch_boundary){thunk->boundaries[n].from,
                                                          (uint8_t)(thunk->boundaries[n].to - thunk->moved_at)};
    }
    struct traced_function *traced = &work->process->functions.items[work->ids[i]];
    traced->thunk = at;
    memcpy(traced->thunk_begin, thunk->bytes, sizeof traced->thunk_begin);
}

// A block for all of them, with the addresses of the stubs in it, and room for their sites.
int traced_map_block(struct traced_install *work, struct base_error *error)
{
    struct traced_process *process = work->process;
    const struct qut_plan_header *header = work->module->plan->header;
    const uint64_t begin = work->module->bias + header->text_start, end = work->module->bias + header->text_end;
    work->block_bytes = sum_sizes(work);
    work->code = calloc(1, work->block_bytes);
    work->sites = calloc(work->ledger_room, sizeof *work->sites);
    if (!work->code || !work->sites)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for thunks");
    if (traced_channel_map(process, begin, end, work->block_bytes, &work->block, error) != 0)
        return -1;
    memcpy(work->code + QUT_CALLS_BLOCK_ENTER_AT, &process->header.enter_stub, sizeof process->header.enter_stub);
    memcpy(work->code + QUT_CALLS_BLOCK_PLACE_AT, &process->header.place_stub, sizeof process->header.place_stub);
    memcpy(work->code + QUT_CALLS_BLOCK_COUNT_AT, &process->header.count_stub, sizeof process->header.count_stub);
    return 0;
}

int traced_write_block(struct traced_install *work, struct base_error *error)
{
    const struct qut_calls_header *header = &work->process->header;
    const struct qut_calls_ledger_stub stub = {.stub_begin = header->stub_begin,
                                               .stub_end = header->stub_end,
                                               .exit_return = header->exit_return,
                                               .exit_end = header->exit_end,
                                               .shadow_distance = header->shadow_distance,
                                               .words_distance = header->words_distance,
                                               .granules_address = header->granules_address};
    rescue_ledger_write(work->code, work->block, work->ledger_at, work->ledger_room, work->sites, work->site_count,
                        &stub);
    return patch_write(work->process->patch, work->block, work->code, work->block_bytes, error);
}

static bool is_trap(const struct traced_install *work, size_t i)
{
    return planned(work, i)->kind == QUT_PLAN_TRAP;
}

int traced_make_block(struct traced_install *work, struct base_error *error)
{
    if (traced_map_block(work, error) != 0)
        return -1;
    struct traced_process *process = work->process;
    struct qut_calls_trap *rows = (struct qut_calls_trap *)(void *)(work->code + work->traps_at);
    uint64_t at = QUT_CALLS_BLOCK_CODE_AT;
    size_t traps = 0;
    for (size_t i = 0; i < work->count; i++) {
        struct calls_thunk thunk;
        at = traced_aligned(at, QUT_CALLS_THUNK_ALIGNMENT);
        if (!traced_make_thunk(work, i, work->block + at, &thunk) || thunk.size_bytes > work->traps_at - at)
            continue; // too far away: it stays as it is, and is counted below
        const size_t before = work->site_count;
        memcpy(work->code + at, thunk.bytes, thunk.size_bytes);
        add_site(work, i, &thunk, work->block + at);
        at += thunk.size_bytes;
        if (work->site_count != before && is_trap(work, i))
            traced_traps_add(rows, &traps, &work->sites[before]);
    }
    if (traced_write_block(work, error) != 0)
        return -1;
    if (!traced_traps_tell(process, work->module, work->block + work->traps_at, traps))
        work->site_count = traced_traps_leave(process, work->module, work->sites, work->site_count);
    return 0;
}

// ---- entries

void traced_note_stop(struct traced_process *process, const struct patch_figures *figures)
{
    struct traced_result *result = &process->result;
    result->stops++;
    result->begin_stop_ns += figures->stopped_ns;
    if (figures->stopped_ns > result->longest_stop_ns)
        result->longest_stop_ns = figures->stopped_ns;
    result->moved_threads += figures->moved_threads + figures->moved_handlers;
}

enum { STOP_TRIES = 40 };

// A thread that waits for a disk, or in vfork, cannot be stopped: it does not take long, mostly.
static void wait_a_moment(void)
{
    const struct timespec nap = {.tv_nsec = 50000000};
    nanosleep(&nap, NULL);
}

int traced_put_in(struct traced_install *work, struct base_error *error)
{
    int status = work->site_count ? -1 : 0;
    for (unsigned i = 0; status != 0 && i < STOP_TRIES; i++) {
        struct patch_figures figures = {.put_in = 0};
        struct base_error why = {0};
        if (i)
            wait_a_moment();
        status = patch_put_in(work->process->patch, work->sites, work->site_count, &figures, &why);
        if (status == 0)
            traced_note_stop(work->process, &figures);
        else if (i + 1 == STOP_TRIES || kill(work->process->pid, 0) != 0)
            return base_fail_as(error, &why);
    }
    return status;
}

int traced_tell_function(struct traced_process *process, uint32_t id, struct base_error *error)
{
    const struct traced_function *function = &process->functions.items[id];
    const struct traced_module *module = &process->modules.items[function->module];
    const struct qut_plan_function *plan = &module->plan->functions[function->index];
    const struct collect_calls_function written = {.id = id,
                                                   .module = module->number,
                                                   .vaddr = plan->entry_vaddr,
                                                   .size = plan->size_bytes,
                                                   .flags = function->is_thinned   ? QUT_TRACE_FILE_CALL_THINNED
                                                            : function->is_counted ? QUT_TRACE_FILE_CALL_COUNTED
                                                                                   : 0,
                                                   .name = calls_plan_name(module->plan, plan)};
    return collect_calls_function(process->writer, &written, error);
}

static int note_function(struct traced_install *work, const struct patch_site *site, struct base_error *error)
{
    struct traced_process *process = work->process;
    struct traced_function *function = &process->functions.items[site->id];
    if (!site->id) // in padding
        return 0;
    const struct qut_plan_function *plan = &work->module->plan->functions[function->index];
    if (site->state != PATCH_IN) {
        if ((size_t)site->state < sizeof process->result.others / sizeof *process->result.others)
            process->result.others[site->state]++;
        return 0;
    }
    function->address = site->address;
    if (!work->module->first_address && site->size == sizeof work->module->first_bytes) {
        memcpy(work->module->first_bytes, site->patched, sizeof work->module->first_bytes);
        work->module->first_address = site->address;
    }
    process->result.functions++;
    process->result.kinds[plan->kind]++;
    function->is_told = true;
    return traced_tell_function(process, site->id, error);
}

// ---- all of it

static int take_ids(struct traced_install *work, const uint32_t *wanted, size_t count, struct base_error *error)
{
    struct traced_process *process = work->process;
    for (size_t i = 0; i < count; i++) {
        const struct qut_plan_function *plan = &work->module->plan->functions[wanted[i]];
        if (plan->kind == QUT_PLAN_TRAP && !traced_traps_fit(process, work->module)) {
            uint64_t *refused = process->options->traps ? &process->result.traps_refused : &process->result.traps;
            ++*refused;
            continue;
        }
        if (process->functions.count > QUT_CALLS_ID_MAX) {
            process->result.too_many++;
            continue;
        }
        struct traced_function *function = BASE_ADD(&process->functions);
        if (!function)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        *function = (struct traced_function){.module = work->module_index,
                                             .index = wanted[i],
                                             .is_counted = process->options->count_only,
                                             .least_ticks = process->least_ticks};
        work->trap_count += plan->kind == QUT_PLAN_TRAP;
        work->ids[work->count] = (uint32_t)process->functions.count - 1;
        work->wanted[work->count++] = wanted[i];
    }
    return 0;
}

int traced_install(struct traced_process *process, uint32_t module, const uint32_t *wanted, size_t count,
                   struct base_error *error)
{
    struct traced_install work = {.process = process,
                                  .module = &process->modules.items[module],
                                  .module_index = module,
                                  .wanted = calloc(count, sizeof *work.wanted),
                                  .ids = calloc(count, sizeof *work.ids)};
    int status = work.wanted && work.ids ? take_ids(&work, wanted, count, error)
                                         : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (status == 0 && work.count) {
        status = traced_probe_mark(process, module, error);
        status = status == 0 ? traced_make_block(&work, error) : status;
    }
    if (status == 0)
        status = traced_put_in(&work, error);
    work.module->block = work.block;
    work.module->block_bytes = work.block_bytes;
    for (size_t i = 0; status == 0 && i < work.count; i++)
        process->result.out_of_reach += process->functions.items[work.ids[i]].thunk == 0;
    for (size_t i = 0; status == 0 && i < work.site_count; i++)
        status = note_function(&work, &work.sites[i], error);
    free(work.wanted);
    free(work.ids);
    free(work.code);
    free(work.sites);
    return status;
}

// ---- out again

void traced_forget(struct traced_process *process, uint32_t module)
{
    struct patch_figures figures = {.put_in = 0};
    struct base_error error = {0};
    uint64_t *addresses = calloc(process->functions.count, sizeof *addresses);
    size_t count = 0;
    process->modules.items[module].first_address = 0;
    traced_traps_forget(process, &process->modules.items[module]);
    traced_callers_forget(process, module);
    for (size_t i = 1; addresses && i < process->functions.count; i++) {
        struct traced_function *function = &process->functions.items[i];
        if (function->module != module || !function->address)
            continue;
        addresses[count++] = function->address;
        function->address = 0;
    }
    if (count)
        patch_take_out(process->patch, addresses, count, &figures, &error);
    free(addresses);
}

int traced_take_all_out(struct patch_process *patch, pid_t pid, struct patch_figures *figures, struct base_error *error)
{
    int status = -1;
    for (unsigned i = 0; status != 0 && i < STOP_TRIES && kill(pid, 0) == 0; i++) {
        if (i)
            wait_a_moment();
        *error = (struct base_error){0};
        status = patch_take_out(patch, NULL, 0, figures, error);
    }
    return status;
}

void traced_take_out(struct traced_process *process)
{
    struct patch_figures figures = {.put_in = 0};
    struct base_error error = {0};
    struct traced_result *result = &process->result;
    if (!process->patch)
        return;
    uint32_t *must_stay = &((struct qut_calls_header *)(void *)process->memory)->must_stay;
    __atomic_store_n(must_stay, 1, __ATOMIC_RELEASE);
    if (traced_take_all_out(process->patch, process->pid, &figures, &error) != 0) {
        result->not_put_back += patch_site_count(process->patch);
        if (!process->error.reason)
            process->error = error;
        return;
    }
    if (figures.in_thunks == 0 && patch_site_count(process->patch) == 0)
        __atomic_store_n(must_stay, 0, __ATOMIC_RELEASE);
    result->put_back += figures.taken_out;
    result->not_put_back += patch_site_count(process->patch);
    result->returns_put_back += figures.restored_returns;
    result->stops++;
    result->end_stop_ns += figures.stopped_ns;
    if (figures.stopped_ns > result->longest_stop_ns)
        result->longest_stop_ns = figures.stopped_ns;
}
