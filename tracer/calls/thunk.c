// SPDX-License-Identifier: Apache-2.0
#include "tracer/calls/thunk.h"

#include "formats/qut_rule.h"
#include "tracer/calls/inside.h"

static bool is_patched(const struct qut_plan_function *function)
{
    return function->kind != QUT_PLAN_REFUSED && function->kind < QUT_PLAN_KIND_END;
}

bool calls_thunk_make(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                      struct calls_thunk *thunk)
{
    *thunk = (struct calls_thunk){0};
    if (!is_patched(function))
        return false;
    return place->architecture == QUT_ARCH_AARCH64 ? calls_thunk_aarch64(function, place, thunk)
                                                   : calls_thunk_x86_64(function, place, thunk);
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
