// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/runtime/jit_registry.h"
#include "libqut/runtime/stats.h"

struct qut_registry qut_registry;
_Atomic uintptr_t qut_unregistered_ends[QUT_END_REASON_COUNT];

// ---- fork

static const struct qut_watch *watch(void)
{
    return atomic_load_explicit(&qut_registry_watch, memory_order_acquire);
}

static void before_fork(void)
{
    qut_os_lock(&qut_registry.lock);
    if (watch())
        watch()->before_fork();
}

static void after_fork_in_parent(void)
{
    if (watch())
        watch()->in_parent();
    qut_os_unlock(&qut_registry.lock);
}

// There is one thread. It may hold none of the locks, and whoever held them is gone. The list and the tables are as
// they were: walks go on. Pending tables stay pending until somebody makes them.
static void after_fork_in_child(void)
{
    struct qut_registry *registry = &qut_registry;
    if (registry->thread)
        qut_os_thread_forget(registry->thread);
    registry->thread = NULL;
    registry->is_child = true;
    qut_threads_after_fork();
    qut_walks_after_fork();
    atomic_store_explicit(&registry->control, 0, memory_order_relaxed);
    atomic_store_explicit(&registry->work, 0, memory_order_relaxed);
    atomic_store_explicit(&registry->stopping, 0, memory_order_relaxed);
    qut_jit_after_fork();
    if (watch())
        watch()->in_child();
    qut_os_unlock(&registry->lock);
}

// Once in a process's life. Under control.
static int prepare_process(void)
{
    static bool prepared;
    if (prepared)
        return 0;
    if (qut_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return -ENOMEM;
    qut_os_fences_init();
    prepared = true;
    return 0;
}

int qut_registry_prepare_process(void)
{
    qut_os_lock(&qut_registry.control);
    int result = prepare_process();
    qut_os_unlock(&qut_registry.control);
    return result;
}

// ---- counts

static void sum_ends(const struct qut_registry *registry, uintptr_t *ends)
{
    for (unsigned i = 0; i < QUT_END_REASON_COUNT; i++) {
        ends[i] = registry->ended[i] + atomic_load_explicit(&qut_unregistered_ends[i], memory_order_relaxed);
        for (const struct qut_thread *thread = registry->threads; thread; thread = thread->next)
            ends[i] += atomic_load_explicit(&thread->ends[i], memory_order_relaxed) +
                       atomic_load_explicit(&thread->nested_ends[i], memory_order_relaxed);
    }
}

static_assert((int)QUT_END_REASON_COUNT <= sizeof((struct qut_stats *)0)->ends / sizeof(uint64_t),
              "every reason has its count");

void qut_get_stats(struct qut_stats *stats, size_t size)
{
    struct qut_registry *registry = &qut_registry;
    qut_os_lock(&registry->lock);
    struct qut_stats now = registry->stats;
    qut_jit_fill_stats(&now);
    uintptr_t ends[QUT_END_REASON_COUNT];
    sum_ends(registry, ends);
    for (unsigned i = 0; i < QUT_END_REASON_COUNT; i++)
        now.ends[i] = ends[i] - registry->before[i];
    qut_os_unlock(&registry->lock);
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof now ? size : sizeof now);
}

// ---- start and stop

static int set_options(struct qut_registry *registry, const struct qut_options *options)
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
static void drop_modules(struct qut_registry *registry, int patience_ms)
{
    qut_os_lock(&registry->work);
    qut_os_lock(&registry->lock);
    atomic_store_explicit(&registry->started, 0, memory_order_release);
    qut_registry_unpublish();
    qut_jit_drop();
    for (size_t i = 0; i < registry->record_count; i++) {
        qut_registry_tell_gone(registry->records[i]);
        qut_registry_push_retired(&registry->records[i]->retired);
    }
    free(registry->records);
    registry->records = NULL;
    registry->record_count = 0;
    memset(&registry->stats, 0, sizeof registry->stats);
    char *directory = registry->cache_directory;
    registry->cache_directory = NULL;
    qut_os_unlock(&registry->lock);
    free(directory);
    qut_registry_reclaim(patience_ms);
    qut_os_unlock(&registry->work);
}

// Under control.
static int start(struct qut_registry *registry, const struct qut_options *options)
{
    int result = prepare_process();
    if (result == 0)
        result = qut_thread_register();
    if (result == 0)
        result = set_options(registry, options);
    if (result != 0)
        return result;
    qut_os_lock(&registry->work);
    qut_os_lock(&registry->lock);
    sum_ends(registry, registry->before);
    qut_os_unlock(&registry->lock);
    result = qut_registry_scan();
    if (result >= 0)
        atomic_store_explicit(&registry->started, 1, memory_order_release);
    qut_os_unlock(&registry->work);
    if (result >= 0) {
        qut_os_lock(&registry->lock);
        result = qut_registry_ensure_thread();
        qut_os_unlock(&registry->lock);
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
    qut_os_read_self((uintptr_t)&byte, &copy, 1);
    qut_os_alternate_stack(&low, &high);
    qut_os_wake(&qut_registry.bell);
    struct qut_cursor cursor;
    qut_cursor_here(&cursor);
    qut_cursor_next(&cursor);
}

int qut_start(const struct qut_options *options)
{
    struct qut_registry *registry = &qut_registry;
    if (!options || options->size != sizeof *options || (options->flags & ~(uint32_t)QUT_START_NO_THREAD) ||
        options->zero)
        return -EINVAL;
    if (!qut_os_has_thread_words())
        return -ENOMEM;
    qut_os_lock(&registry->control);
    int result = atomic_load_explicit(&registry->started, memory_order_relaxed) ? -EALREADY : start(registry, options);
    qut_os_unlock(&registry->control);
    if (result == 0)
        bind_calls();
    return result;
}

static bool asks_for_loader(struct qut_registry *registry)
{
    return atomic_load_explicit(&registry->asks_for_loader, memory_order_acquire) != 0;
}

// Under control. No other one begins before `stopping` is 0 again.
static void end_thread(struct qut_registry *registry)
{
    atomic_store_explicit(&registry->stopping, 1, memory_order_release);
    qut_os_lock(&registry->lock);
    struct qut_os_thread *thread = registry->thread;
    registry->thread = NULL;
    qut_os_unlock(&registry->lock);
    qut_registry_ring();
    enum { PATIENCE_MS = 100 };
    if (thread && asks_for_loader(registry))
        qut_os_wait(&registry->asks_for_loader, 1, PATIENCE_MS);
    if (thread && !asks_for_loader(registry)) // else it stays, with its stack, until the process ends
        qut_os_thread_join(thread);
}

void qut_stop(void)
{
    enum { WALK_PATIENCE_MS = 1000 };
    struct qut_registry *registry = &qut_registry;
    qut_os_lock(&registry->control);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        end_thread(registry);
        drop_modules(registry, WALK_PATIENCE_MS);
        atomic_store_explicit(&registry->stopping, 0, memory_order_release);
    }
    qut_os_unlock(&registry->control);
}

void qut_registry_pause_thread(void)
{
    struct qut_registry *registry = &qut_registry;
    qut_os_lock(&registry->control);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed))
        end_thread(registry);
    qut_os_unlock(&registry->control);
}

void qut_registry_resume_thread(void)
{
    struct qut_registry *registry = &qut_registry;
    qut_os_lock(&registry->control);
    atomic_store_explicit(&registry->stopping, 0, memory_order_release);
    qut_os_lock(&registry->lock);
    qut_registry_ensure_thread();
    qut_os_unlock(&registry->lock);
    qut_os_unlock(&registry->control);
}
