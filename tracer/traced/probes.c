// SPDX-License-Identifier: Apache-2.0
// Tells the agent of probes, and which programs run at which function.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/qut_probe_live.h"
#include "tracer/traced/inside.h"
#include "tracer/traced/probe.h"

// A table of masks, behind those that there are. Untouched pages of it take no room.
static int take_masks(struct traced_probe *probe, uint64_t *begin, struct base_error *error)
{
    pthread_mutex_lock(&probe->lock);
    *begin = probe->end_bytes;
    const uint64_t end = *begin + (uint64_t)QUT_PROBE_LIVE_MASKS_BYTES;
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
    void *masks = mmap(NULL, QUT_PROBE_LIVE_MASKS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       probe->memory_fd, (off_t)process->masks_begin);
    if (masks == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    process->masks = masks;
    for (size_t i = 0; i < process->options->pattern_count; i++)
        if (calls_patterns_add(&process->probe_patterns[i], process->options->patterns[i], false, error) != 0)
            return -1;
    return 0;
}

int traced_probe_tell(struct traced_process *process, struct base_error *error)
{
    const struct traced_probe *probe = process->options->probe;
    return !probe ? 0
                  : traced_channel_probe(process, probe->memory_fd, process->masks_begin,
                                         process->masks_begin + (uint64_t)QUT_PROBE_LIVE_MASKS_BYTES, error);
}

void traced_probe_inherit(struct traced_process *process, const struct traced_process *parent)
{
    if (process->masks && parent->masks)
        memcpy(process->masks, parent->masks, process->functions.count * sizeof *process->masks);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void traced_probe_mark(struct traced_process *process, uint32_t module)
{
    const struct traced_module *marked = &process->modules.items[module];
    for (size_t i = 0; process->masks && i < process->options->pattern_count; i++) {
        struct calls_selection meant = {.count = 0};
        struct base_error unused = {0};
        if (calls_patterns_want_module(&process->probe_patterns[i], marked->name) &&
            calls_patterns_select(&process->probe_patterns[i], marked->name, marked->plan, &meant, &unused) == 0 &&
            meant.count)
            for (size_t id = 1; id < process->functions.count; id++) {
                const struct traced_function *function = &process->functions.items[id];
                if (function->module == module &&
                    bsearch(&function->index, meant.items, meant.count, sizeof *meant.items, by_number))
                    __atomic_fetch_or(&process->masks[id], process->options->probe->programs[i], __ATOMIC_RELEASE);
            }
        calls_selection_free(&meant);
    }
}

void traced_probe_free(struct traced_process *process)
{
    if (process->masks)
        munmap(process->masks, QUT_PROBE_LIVE_MASKS_BYTES);
    process->masks = NULL;
    for (size_t i = 0; i < TRACED_PATTERNS_MAX; i++)
        calls_patterns_free(&process->probe_patterns[i]);
}
