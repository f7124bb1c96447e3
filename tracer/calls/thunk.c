// SPDX-License-Identifier: Apache-2.0
#include "tracer/calls/thunk.h"

#include <string.h>

#include "formats/qut_rule.h"
#include "tracer/calls/inside.h"

static bool is_patched(const struct qut_plan_function *function)
{
    return function->kind != QUT_PLAN_REFUSED && function->kind < QUT_PLAN_KIND_END;
}

// Behind the code. What fills the room before it is never executed.
static bool put_origin(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                       struct calls_thunk *thunk)
{
    enum { AWAY = QUT_CALLS_THUNK_ALIGNMENT - 1 };
    const unsigned at = (thunk->size_bytes + (unsigned)AWAY) & ~(unsigned)AWAY;
    struct qut_calls_origin origin = {.mark = QUT_CALLS_ORIGIN_MARK ^ (place->thunk_address + at),
                                      .address = function->entry_vaddr + function->patch_at + place->load_bias,
                                      .code_bytes = (uint8_t)at,
                                      .moved_at = thunk->moved_at,
                                      .moved_end = thunk->moved_end,
                                      .pushes = thunk->pushes};
    if (at + sizeof origin > sizeof thunk->bytes)
        return false;
    for (unsigned i = 0; i < thunk->boundary_count; i++) {
        origin.boundaries[i].from = thunk->boundaries[i].from;
        origin.boundaries[i].to = thunk->boundaries[i].to;
    }
    memcpy(thunk->bytes + at, &origin, sizeof origin);
    thunk->size_bytes = (uint8_t)(at + sizeof origin);
    return true;
}

bool calls_thunk_make(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                      struct calls_thunk *thunk)
{
    *thunk = (struct calls_thunk){0};
    if (!is_patched(function))
        return false;
    const bool is_made = place->architecture == QUT_ARCH_AARCH64 ? calls_thunk_aarch64(function, place, thunk)
                                                                 : calls_thunk_x86_64(function, place, thunk);
    return is_made && put_origin(function, place, thunk);
}

// The multiples of the golden ratio lie evenly, also of each second or fifth number: those are recorded whose fraction
// is below 2^-log2.
uint32_t calls_thinning_mask(uint32_t log2)
{
    return log2 ? ~(uint32_t)0 << (32 - log2) : 0;
}

bool calls_patch_make(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                      struct calls_patch *patch)
{
    *patch = (struct calls_patch){.piece_count = 1};
    if (!is_patched(function))
        return false;
    return place->architecture == QUT_ARCH_AARCH64 ? calls_patch_aarch64(function, place, patch)
                                                   : calls_patch_x86_64(function, place, patch);
}
