// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/link_cache.h"

#include <string.h>

void runtime_link_cache_restart(struct runtime_link_cache *cache, uint32_t epoch)
{
    if (cache->epoch) // else it was never used
        memset(cache, 0, sizeof *cache);
    cache->epoch = epoch;
    cache->next_pause = RUNTIME_LINK_PAUSE_MIN;
}
