// SPDX-License-Identifier: Apache-2.0
// Functions with room for a single byte are entered by a trap, which the agent's handler sends to their thunks: the
// agent is told of them by a table in their block.
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/traced/inside.h"

// libc blocks all signals where nobody can keep one from it: a trap there would end the process.
bool traced_traps_fit(const struct traced_process *process, const struct traced_module *module)
{
    static const char *const never[] = {"libc.so*", "libc-*.so", "libpthread*.so*", "ld-*.so*"};
    const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (fnmatch(never[i], name, 0) == 0)
            return false;
    return process->options->traps && !process->traps_are_refused;
}

void traced_traps_add(struct qut_calls_trap *rows, size_t *count, const struct patch_site *site)
{
    rows[(*count)++] =
        (struct qut_calls_trap){.address = site->address, .thunk = site->thunk, .original = site->original[0]};
}

bool traced_traps_tell(struct traced_process *process, struct traced_module *module, uint64_t address, size_t count)
{
    struct base_error why = {0};
    const size_t bytes = count * sizeof(struct qut_calls_trap);
    if (count == 0)
        return true;
    if (traced_channel_traps(process, address, address + bytes, &why) != 0) {
        process->traps_are_refused = true;
        return false;
    }
    module->traps = address;
    module->traps_bytes = bytes;
    return true;
}

size_t traced_traps_leave(struct traced_process *process, const struct traced_module *module, struct patch_site *sites,
                          size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct patch_site site = sites[i];
        const struct traced_function *function = &process->functions.items[site.id];
        if (site.id && module->plan->functions[function->index].kind == QUT_PLAN_TRAP) {
            process->result.traps_refused++;
            continue;
        }
        if (site.partner) // right before it
            site.partner = (uint32_t)kept;
        sites[kept++] = site;
    }
    return kept;
}

void traced_traps_forget(struct traced_process *process, struct traced_module *module)
{
    void *nothing = module->traps ? calloc(1, module->traps_bytes) : NULL;
    if (nothing)
        patch_write(process->patch, module->traps, nothing, module->traps_bytes, NULL);
    free(nothing);
    module->traps = 0;
}
