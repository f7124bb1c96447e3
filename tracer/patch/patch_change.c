// SPDX-License-Identifier: Apache-2.0
// Sites in, and out again.
#include <stdlib.h>
#include <string.h>

#include "tracer/patch/inside.h"

enum { LEAVE_ATTEMPTS = 20, IDLE_ATTEMPTS = 3 };

static int by_address(const void *a, const void *b)
{
    const struct patch_site *x = *(struct patch_site *const *)a, *y = *(struct patch_site *const *)b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void end_work(struct patch_work *work)
{
    free(work->sites);
    free(work->runs);
    free(work->bytes);
    free(work->places);
}

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
}

// All that needs memory, before the stop.
static int begin_work(struct patch_work *work, size_t site_count, struct base_error *error)
{
    work->sites = calloc(site_count + 1, sizeof *work->sites);
    work->places = calloc(site_count + 1, sizeof *work->places);
    return work->sites && work->places ? 0 : no_memory(error);
}

// What was written before a run failed is put back.
static int write_or_not_at_all(struct patch_work *work, struct base_error *error)
{
    size_t written, again;
    if (patch_write_runs(work, &written, error) == 0)
        return 0;
    for (size_t r = 0; r <= written && r < work->run_count; r++)
        for (size_t i = 0; i < work->runs[r].count; i++) {
            struct patch_site *site = work->sites[work->runs[r].first + i];
            uint8_t *bytes = patch_run_bytes(&work->runs[r], site);
            if (bytes && site->state == PATCH_IN)
                memcpy(bytes, memcmp(bytes, site->original, site->size) == 0 ? site->patched : site->original,
                       site->size);
        }
    work->run_count = written < work->run_count ? written + 1 : written;
    patch_write_runs(work, &again, NULL);
    return -1;
}

// ---- in

// The copy of the instruction at a pc.
static uint64_t into_copy(const struct patch_site *site, uint64_t pc)
{
    for (unsigned i = 0; i < site->boundary_count; i++)
        if (site->address + site->boundaries[i].offset == pc)
            return site->moved + site->boundaries[i].moved_offset;
    return 0;
}

static size_t first_installed_behind(const struct patch_process *process, uint64_t address)
{
    size_t low = 0, high = process->installed.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct patch_site *site = &process->installed.items[middle].site;
        if (site->address + site->size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool overlaps_installed(const struct patch_process *process, const struct patch_site *site)
{
    size_t next = first_installed_behind(process, site->address);
    return next < process->installed.count && process->installed.items[next].site.address < site->address + site->size;
}

static void stuck_on_way_in(struct patch_work *work, struct patch_site *site)
{
    (void)work;
    site->state = PATCH_OCCUPIED;
}

static bool is_sound(const struct patch_site *site, size_t count)
{
    return site->size > 0 && site->size <= PATCH_BYTES_MAX && site->boundary_count > 0 &&
           site->boundary_count <= PATCH_BOUNDARIES_MAX && site->partner <= count;
}

static int plan_in(struct patch_work *work, struct patch_site *sites, size_t count, struct base_error *error)
{
    struct patch_site **sorted = work->sites;
    for (size_t i = 0; i < count; i++) {
        sites[i].state = PATCH_OUT;
        sorted[i] = &sites[i];
        if (!is_sound(&sites[i], count))
            return base_fail(error, BASE_ERR_MALFORMED, "", 0, "the site at 0x%llx is not sound",
                             (unsigned long long)sites[i].address);
    }
    qsort(sorted, count, sizeof(struct patch_site *), by_address);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        struct patch_site *site = sorted[i];
        if (site->address < end || overlaps_installed(work->process, site)) {
            site->state = PATCH_OVERLAPS;
            continue;
        }
        end = site->address + site->size;
        sorted[work->site_count++] = site;
    }
    return patch_plan_runs(work, error);
}

// Behind what changes, and the last boundary.
static uint64_t end_of_place(const struct patch_site *site)
{
    unsigned last = site->boundaries[site->boundary_count - 1].offset + 1u;
    return site->address + (last > site->size ? last : site->size);
}

static void check_site(struct patch_work *work, struct patch_run *run, struct patch_site *site)
{
    const uint8_t *bytes = patch_run_bytes(run, site);
    struct patch_installed unused;
    if (!bytes || !patch_identify(work->process, site, &unused))
        site->state = PATCH_NOT_MAPPED;
    else if (memcmp(bytes, site->original, site->size) != 0)
        site->state = PATCH_ANOTHERS;
    else
        site->state = PATCH_IN;
    if (site->state == PATCH_IN)
        work->places[work->place_count++] = (struct patch_place){site->address + 1, end_of_place(site), site};
}

static void check_partners(struct patch_site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t partner = sites[i].partner;
        if (partner != 0 && sites[i].state == PATCH_IN && sites[partner - 1].state != PATCH_IN)
            sites[i].state = sites[partner - 1].state;
    }
}

static int put_in_stopped(struct patch_work *work, struct patch_site *sites, size_t count, struct base_error *error)
{
    patch_read_runs(work);
    for (size_t r = 0; r < work->run_count; r++)
        for (size_t i = 0; i < work->runs[r].count; i++)
            check_site(work, &work->runs[r], work->sites[work->runs[r].first + i]);
    // Sites are in order, so are places. Threads first: should we be killed in between, they are well in the copy.
    patch_move_all(work, stuck_on_way_in);
    check_partners(sites, count);
    for (size_t r = 0; r < work->run_count; r++)
        for (size_t i = 0; i < work->runs[r].count; i++) {
            const struct patch_site *site = work->sites[work->runs[r].first + i];
            if (site->state != PATCH_IN)
                continue;
            memcpy(patch_run_bytes(&work->runs[r], site), site->patched, site->size);
            work->runs[r].is_changed = true;
        }
    return write_or_not_at_all(work, error);
}

static int by_installed_address(const void *a, const void *b)
{
    const struct patch_installed *x = a, *y = b;
    return x->site.address < y->site.address ? -1 : x->site.address > y->site.address;
}

static void remember(struct patch_work *work)
{
    struct patch_process *process = work->process;
    for (size_t i = 0; i < work->site_count; i++)
        if (work->sites[i]->state == PATCH_IN)
            patch_identify(process, work->sites[i], BASE_ADD(&process->installed)); // there is room
    if (process->installed.count)
        qsort(process->installed.items, process->installed.count, sizeof *process->installed.items,
              by_installed_address);
}

int patch_put_in(struct patch_process *process, struct patch_site *sites, size_t count, struct patch_figures *figures,
                 struct base_error *error)
{
    struct patch_work work = {.process = process, .figures = figures, .move = into_copy};
    *figures = (struct patch_figures){0};
    int result = begin_work(&work, count, error);
    if (result == 0 && !BASE_RESERVE(&process->installed, count))
        result = no_memory(error);
    if (result == 0)
        result = plan_in(&work, sites, count, error);
    if (result == 0)
        result = patch_stop(process, figures, error);
    if (result == 0) {
        result = put_in_stopped(&work, sites, count, error);
        if (result == 0)
            remember(&work);
        patch_resume(process, figures);
    }
    for (size_t i = 0; i < count; i++) {
        if (result != 0 && sites[i].state == PATCH_IN)
            sites[i].state = PATCH_OUT;
        figures->put_in += sites[i].state == PATCH_IN;
        figures->refused += sites[i].state != PATCH_IN;
    }
    end_work(&work);
    return result;
}

// ---- out

static uint64_t out_of_thunk(const struct patch_site *site, uint64_t pc)
{
    if (pc < site->restart_end)
        return site->address;
    for (unsigned i = 0; i < site->boundary_count; i++)
        if (site->moved + site->boundaries[i].moved_offset == pc)
            return site->address + site->boundaries[i].offset;
    return 0;
}

static void stuck_on_way_out(struct patch_work *work, struct patch_site *site)
{
    (void)site;
    work->figures->in_thunks++;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int plan_out(struct patch_work *work, const uint64_t *addresses, size_t count, struct base_error *error)
{
    struct patch_process *process = work->process;
    uint64_t *sorted = addresses ? calloc(count + 1, sizeof *sorted) : NULL;
    if (addresses && !sorted)
        return no_memory(error);
    if (sorted && count) {
        memcpy(sorted, addresses, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_number);
    }
    for (size_t i = 0; i < process->installed.count; i++) {
        struct patch_site *site = &process->installed.items[i].site;
        if (!sorted || bsearch(&site->address, sorted, count, sizeof *sorted, by_number))
            work->sites[work->site_count++] = site;
    }
    free(sorted);
    return patch_plan_runs(work, error);
}

static bool is_same_module(const struct patch_process *process, const struct patch_installed *installed)
{
    struct patch_installed now;
    return patch_identify(process, &installed->site, &now) && now.device == installed->device &&
           now.inode == installed->inode && now.file_offset == installed->file_offset;
}

static void take_out_site(struct patch_work *work, struct patch_run *run, struct patch_site *site)
{
    // A site is the first part of what is known of it.
    const struct patch_installed *installed = (const struct patch_installed *)(const void *)site;
    uint8_t *bytes = patch_run_bytes(run, site);
    if (!bytes || !is_same_module(work->process, installed) || memcmp(bytes, site->original, site->size) == 0) {
        site->state = PATCH_UNLOADED; // and perhaps loaded again
    } else if (memcmp(bytes, site->patched, site->size) != 0) {
        site->state = PATCH_OVERWRITTEN;
    } else {
        memcpy(bytes, site->original, site->size);
        run->is_changed = true;
    }
    if (site->state == PATCH_IN && site->thunk < site->thunk_end)
        work->places[work->place_count++] = (struct patch_place){site->thunk, site->thunk_end, site};
}

static int take_out_stopped(struct patch_work *work, struct base_error *error)
{
    patch_read_runs(work);
    for (size_t r = 0; r < work->run_count; r++)
        for (size_t i = 0; i < work->runs[r].count; i++)
            take_out_site(work, &work->runs[r], work->sites[work->runs[r].first + i]);
    patch_sort_places(work);
    if (write_or_not_at_all(work, error) != 0)
        return -1;
    patch_move_all(work, stuck_on_way_out);
    return 0;
}

static void forget(struct patch_work *work)
{
    struct patch_process *process = work->process;
    size_t kept = 0;
    for (size_t i = 0; i < work->site_count; i++) {
        struct patch_site *site = work->sites[i];
        work->figures->taken_out += site->state == PATCH_IN;
        work->figures->lost += site->state != PATCH_IN;
        site->state = PATCH_OUT;
        patch_note_past(process, (const struct patch_installed *)(const void *)site);
    }
    for (size_t i = 0; i < process->installed.count; i++)
        if (process->installed.items[i].site.state == PATCH_IN)
            process->installed.items[kept++] = process->installed.items[i];
    process->installed.count = kept;
}

// Whoever is in the stub, or in a thunk where nothing can be said of it, goes on for a moment, and is met elsewhere.
static void leave_thunks(struct patch_work *work)
{
    struct base_error unused;
    unsigned idle = 0;
    for (unsigned i = 0; i < LEAVE_ATTEMPTS && idle < IDLE_ATTEMPTS && work->figures->in_thunks; i++) {
        idle += !patch_let_inner_run(work->process, work->figures);
        work->figures->in_thunks = 0;
        if (patch_stop(work->process, work->figures, &unused) != 0)
            return;
        patch_move_all(work, stuck_on_way_out);
        patch_restore_returns(work->process, work->figures);
    }
}

int patch_take_out(struct patch_process *process, const uint64_t *addresses, size_t count,
                   struct patch_figures *figures, struct base_error *error)
{
    struct patch_work work = {.process = process, .figures = figures, .move = out_of_thunk};
    *figures = (struct patch_figures){0};
    int result = begin_work(&work, process->installed.count, error);
    if (result == 0)
        result = plan_out(&work, addresses, count, error);
    if (result == 0)
        result = patch_stop(process, figures, error);
    if (result == 0) {
        result = take_out_stopped(&work, error);
        if (result == 0 && !addresses) {
            patch_restore_returns(process, figures);
            leave_thunks(&work);
        }
        patch_resume(process, figures);
        if (result == 0)
            forget(&work);
        else
            for (size_t i = 0; i < work.site_count; i++)
                work.sites[i]->state = PATCH_IN;
    }
    end_work(&work);
    return result;
}
