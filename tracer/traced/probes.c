// SPDX-License-Identifier: Apache-2.0
// Tells the agent of probes, and which programs run at which function.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/traced/inside.h"
#include "tracer/traced/probe.h"

// A table of masks, behind those that there are. Untouched pages of it take no room.
static int take_masks(struct traced_probe *probe, uint64_t *begin, struct base_error *error)
{
    pthread_mutex_lock(&probe->lock);
    *begin = probe->end_bytes;
    const uint64_t end = *begin + (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES;
    const int failed = ftruncate(probe->memory_fd, (off_t)end) != 0 ? errno : 0;
    probe->end_bytes = failed ? *begin : end;
    pthread_mutex_unlock(&probe->lock);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "no room for masks of probes: %s", strerror(failed)) : 0;
}

int traced_probe_begin(struct traced_process *process, struct base_error *error)
{
    struct traced_probe *probe = process->options->probe;
    if (!probe)
        return 0;
    if (take_masks(probe, &process->masks_begin, error) != 0)
        return -1;
    void *masks = mmap(NULL, QUT_PROBE_LIVE_PROCESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       probe->memory_fd, (off_t)process->masks_begin);
    if (masks == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    process->masks = masks;
    for (size_t i = 0; i < process->options->pattern_count; i++)
        if (calls_patterns_add(&process->probe_patterns[i], process->options->patterns[i], false, error) != 0)
            return -1;
    return traced_callers_begin(process, error) == 0 ? traced_places_begin(process, error) : -1;
}

int traced_probe_tell(struct traced_process *process, struct base_error *error)
{
    const struct traced_probe *probe = process->options->probe;
    return !probe ? 0
                  : traced_channel_probe(process, probe->memory_fd, process->masks_begin,
                                         process->masks_begin + (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES, error);
}

void traced_probe_inherit(struct traced_process *process, const struct traced_process *parent)
{
    if (process->masks && parent->masks)
        memcpy(process->masks, parent->masks, process->functions.count * sizeof *process->masks);
    traced_callers_inherit(process, parent);
}

// ---- functions that were asked about

struct traced_asked traced_asked_make(uint32_t pattern, const struct qut_plan_header *file, uint64_t entry_vaddr)
{
    struct traced_asked asked = {.pattern = pattern,
                                 .file_bytes = file->file_bytes,
                                 .plan_checksum = file->checksum,
                                 .entry_vaddr = entry_vaddr};
    memcpy(asked.identity, file->identity, sizeof asked.identity);
    return asked;
}

static_assert(sizeof(struct traced_asked) == 64, "compared byte by byte: there are none between its parts");

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct traced_asked));
}

void traced_asked_sort(struct traced_asked *asked, size_t count)
{
    if (count)
        qsort(asked, count, sizeof *asked, by_bytes);
}

static bool was_asked(const struct traced_probe *probe, size_t pattern, const struct calls_plan *plan, uint32_t index)
{
    const struct traced_asked asked =
        traced_asked_make((uint32_t)pattern, plan->header, plan->functions[index].entry_vaddr);
    return probe->asked_count && bsearch(&asked, probe->asked, probe->asked_count, sizeof asked, by_bytes);
}

// ---- which programs run where

struct meant { // at a function, by its place in the plan
    uint32_t programs, left_out;
};

static void mean(const struct traced_process *process, size_t pattern, const struct calls_plan *plan, uint32_t index,
                 struct meant *meant)
{
    const struct traced_probe *probe = process->options->probe;
    const uint32_t programs = probe->programs[pattern], asking = programs & probe->asking_programs;
    const uint32_t left_out = asking && !was_asked(probe, pattern, plan, index) ? asking : 0;
    meant->programs |= programs & ~left_out;
    meant->left_out |= left_out;
}

// malloc's, of each function of the plan. NULL: no memory.
static struct meant *find_meant(struct traced_process *process, const struct traced_module *module)
{
    struct meant *meant = calloc((size_t)module->plan->header->function_count + 1, sizeof *meant);
    bool is_good = meant != NULL;
    for (size_t i = 0; is_good && i < process->options->pattern_count; i++) {
        struct calls_selection fit = {.count = 0};
        struct base_error unused = {0};
        if (calls_patterns_want_module(&process->probe_patterns[i], module->name))
            is_good =
                calls_patterns_select(&process->probe_patterns[i], module->name, module->plan, &fit, &unused) == 0;
        for (size_t k = 0; is_good && k < fit.count; k++)
            mean(process, i, module->plan, fit.items[k], &meant[fit.items[k]]);
        calls_selection_free(&fit);
    }
    if (is_good)
        return meant;
    free(meant);
    return NULL;
}

int traced_probe_narrow(struct traced_process *process, uint32_t module, struct calls_selection *selection,
                        struct base_error *error)
{
    if (!process->masks || !process->options->probe->asking_programs || !selection->count)
        return 0;
    struct meant *meant = find_meant(process, &process->modules.items[module]);
    size_t kept = 0;
    if (!meant)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    for (size_t i = 0; i < selection->count; i++) {
        const struct meant *one = &meant[selection->items[i]];
        process->result.unasked += (one->left_out & ~one->programs) != 0;
        if (one->programs)
            selection->items[kept++] = selection->items[i];
    }
    selection->count = kept;
    free(meant);
    return 0;
}

int traced_probe_mark(struct traced_process *process, uint32_t module, struct base_error *error)
{
    if (!process->masks)
        return 0;
    struct meant *meant = find_meant(process, &process->modules.items[module]);
    if (!meant)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    for (size_t id = 1; id < process->functions.count; id++) {
        const struct traced_function *function = &process->functions.items[id];
        if (function->module == module)
            __atomic_fetch_or(&process->masks[id], meant[function->index].programs, __ATOMIC_RELEASE);
    }
    free(meant);
    return 0;
}

bool traced_probe_is_over(const struct traced_process *process)
{
    const struct traced_probe *probe = process->options->probe;
    return probe && __atomic_load_n(&probe->live->over, __ATOMIC_RELAXED) != QUT_PROBE_LIVE_OVER_NOT;
}

void traced_probe_free(struct traced_process *process)
{
    traced_callers_free(process);
    traced_places_free(process);
    if (process->masks)
        munmap(process->masks, QUT_PROBE_LIVE_PROCESS_BYTES);
    process->masks = NULL;
    for (size_t i = 0; i < TRACED_PATTERNS_MAX; i++)
        calls_patterns_free(&process->probe_patterns[i]);
}
