// SPDX-License-Identifier: Apache-2.0
// Beginning and end: from here on walks of this process find modules and tables.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/modules/jit_registry.h"
#include "libqut/modules/registry.h"

static int set_options(struct modules_registry *registry, const struct qut_options *options)
{
    char *directory = NULL;
    if (options->cache_directory) {
        directory = strdup(options->cache_directory);
        if (!directory)
            return -ENOMEM;
    }
    registry->cache_directory = directory;
    registry->compile = options->compile;
    registry->compile_context = options->compile_context;
    registry->flags = options->flags;
    return 0;
}

// The list and everything it stands on. Under control, with no thread.
static void drop_modules(struct modules_registry *registry, int patience_ms)
{
    os_lock(&registry->work);
    os_lock(&registry->lock);
    atomic_store_explicit(&registry->started, 0, memory_order_release);
    modules_registry_unpublish();
    modules_code_ranges_stop();
    modules_jit_drop();
    modules_machine_drop();
    for (size_t i = 0; i < registry->record_count; i++) {
        modules_registry_tell_gone(registry->records[i]);
        modules_registry_push_retired(&registry->records[i]->retired);
    }
    free(registry->records);
    registry->records = NULL;
    registry->record_count = 0;
    memset(&registry->stats, 0, sizeof registry->stats);
    char *directory = registry->cache_directory;
    registry->cache_directory = NULL;
    os_unlock(&registry->lock);
    free(directory);
    modules_registry_reclaim(patience_ms);
    os_unlock(&registry->work);
}

// Under control.
static int start(struct modules_registry *registry, const struct qut_options *options)
{
    int result = modules_registry_prepare();
    if (result == 0)
        result = qut_thread_register();
    if (result == 0)
        result = set_options(registry, options);
    if (result != 0)
        return result;
    os_lock(&registry->work);
    os_lock(&registry->lock);
    modules_registry_sum_ends(registry, registry->before);
    modules_code_ranges_start(registry->flags & QUT_START_FRAME_POINTERS);
    os_unlock(&registry->lock);
    result = modules_registry_scan();
    if (result >= 0)
        atomic_store_explicit(&registry->started, 1, memory_order_release);
    os_unlock(&registry->work);
    if (result >= 0) {
        os_lock(&registry->lock);
        result = modules_registry_ensure_thread();
        os_unlock(&registry->lock);
    }
    if (result < 0)
        drop_modules(registry, 0);
    return result;
}

// A walk's first calls of libc are bound now, not by the loader in a signal handler, on kilobytes of its stack.
static void bind_calls(void)
{
    uintptr_t low, high;
    uint8_t byte = 0, copy;
    os_read_self((uintptr_t)&byte, &copy, 1);
    os_alternate_stack(&low, &high);
    os_wake(&modules_registry.bell);
    struct qut_cursor cursor;
    qut_cursor_here(&cursor);
    qut_cursor_next(&cursor);
}

int qut_start(const struct qut_options *options)
{
    struct modules_registry *registry = &modules_registry;
    if (!options || options->size != sizeof *options ||
        (options->flags & ~(uint32_t)(QUT_START_NO_THREAD | QUT_START_FRAME_POINTERS)) || options->zero)
        return -EINVAL;
    if (!os_has_thread_words())
        return -ENOMEM;
    os_lock(&registry->control);
    int result = atomic_load_explicit(&registry->started, memory_order_relaxed) ? -EALREADY : start(registry, options);
    os_unlock(&registry->control);
    if (result == 0)
        bind_calls();
    return result;
}

void qut_stop(void)
{
    enum { LOADER_PATIENCE_MS = 100, WALK_PATIENCE_MS = 1000 };
    struct modules_registry *registry = &modules_registry;
    os_lock(&registry->control);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        modules_registry_end_thread(registry, LOADER_PATIENCE_MS);
        drop_modules(registry, WALK_PATIENCE_MS);
        atomic_store_explicit(&registry->stopping, 0, memory_order_release);
    }
    os_unlock(&registry->control);
}
