// SPDX-License-Identifier: Apache-2.0
#include "tracer/managed/art_at.h"

#include <stdlib.h>

#include "base/clock_inline.h"
#include "libqut/target/machine.h"

bool managed_art_at(struct managed_dex *dex, uint64_t address, struct managed_art_place *place)
{
    struct target_art_code code;
    struct qut_module_info info;
    struct managed_dex_place found;
    struct base_error error = {0};
    if (!target_art_code_at(dex->target, address, &code))
        return false;
    bool has_module = qut_target_module(dex->target, code.dex_pc, &info);
    if (!managed_dex_at(dex, has_module ? &info : NULL, code.dex_pc, &found, &error) || !found.method)
        return false;
    *place = (struct managed_art_place){.start = code.start, .end = code.end, .method = found.method};
    return true;
}

// Whether what is there now has been there since then. Before the code is looked at, and behind: nothing was given back
// in between, either.
static bool has_stayed(struct managed_art_looks *looks, struct qut_target *target, uint64_t address, uint64_t since_ns)
{
    struct art_jit_collections now;
    const uint64_t now_ns = base_clock_now_ns();
    if (!target_art_collections(target, address, &now))
        return false;
    if (!looks->is_known || looks->begun != now.begun)
        *looks = (struct managed_art_looks){.is_known = true, .begun = now.begun};
    if (!looks->since_ns && !now.is_under_way)
        looks->since_ns = now_ns;
    return now.begun == 0 || (looks->since_ns && looks->since_ns <= since_ns);
}

void managed_art_look(struct managed_art_looks *looks, struct qut_target *target)
{
    has_stayed(looks, target, 0, 0);
}

bool managed_art_at_since(struct managed_art_looks *looks, struct managed_dex *dex, uint64_t address, uint64_t since_ns,
                          struct managed_art_place *place)
{
    if (!has_stayed(looks, dex->target, address, since_ns) || !managed_art_at(dex, address, place))
        return false;
    if (has_stayed(looks, dex->target, address, since_ns))
        return true;
    free(place->method);
    return false;
}
