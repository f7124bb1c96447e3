// SPDX-License-Identifier: Apache-2.0
// Without the decoder.
#include "tracer/calls/plan.h"

bool calls_plan_is_possible(void)
{
    return false;
}

int calls_plan_make(const char *path, const char *name, struct calls_plan **plan, struct base_error *error)
{
    (void)path;
    (void)name;
    (void)plan;
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                     "calls cannot be traced by a qut that was built without Zydis");
}

int calls_plan_get(const char *path, const char *name, struct calls_plan_cache *cache, struct calls_plan **plan,
                   struct base_error *error)
{
    cache->was_cached = false;
    return calls_plan_make(path, name, plan, error);
}
