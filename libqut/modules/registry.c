// SPDX-License-Identifier: Apache-2.0
// The registry as a whole: what fork makes of it, what its threads have counted, and the thread that looks after it.
#include "libqut/modules/registry.h"

#include <errno.h>
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/modules/end_counts_inline.h"
#include "libqut/modules/jit_registry.h"

struct modules_registry modules_registry;
_Atomic uintptr_t modules_unregistered_ends[QUT_END_REASON_COUNT];

// ---- fork

static const struct modules_watch *watch(void)
{
    return atomic_load_explicit(&modules_registry_watch, memory_order_acquire);
}

static void before_fork(void)
{
    os_lock(&modules_registry.lock);
    if (watch())
        watch()->before_fork();
}

static void after_fork_in_parent(void)
{
    if (watch())
        watch()->in_parent();
    os_unlock(&modules_registry.lock);
}

// There is one thread. It may hold none of the locks, and their holders are gone. The list and the tables are as
// they were: walks go on. Pending tables stay pending until they are made.
static void after_fork_in_child(void)
{
    struct modules_registry *registry = &modules_registry;
    if (registry->thread)
        registry->lost = registry->thread; // none began since an earlier one was lost
    registry->thread = NULL;
    registry->is_child = true;
    modules_threads_after_fork();
    modules_walks_after_fork();
    atomic_store_explicit(&registry->control, 0, memory_order_relaxed);
    atomic_store_explicit(&registry->work, 0, memory_order_relaxed);
    atomic_store_explicit(&registry->stopping, 0, memory_order_relaxed);
    modules_jit_after_fork();
    if (watch())
        watch()->in_child();
    os_unlock(&registry->lock);
}

int modules_registry_prepare(void)
{
    static bool prepared;
    if (prepared)
        return 0;
    if (os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return -ENOMEM;
    os_fences_init();
    prepared = true;
    return 0;
}

int modules_registry_prepare_process(void)
{
    os_lock(&modules_registry.control);
    int result = modules_registry_prepare();
    os_unlock(&modules_registry.control);
    return result;
}

// ---- counts

void modules_registry_sum_ends(const struct modules_registry *registry, uintptr_t *ends)
{
    for (unsigned i = 0; i < QUT_END_REASON_COUNT; i++) {
        ends[i] = registry->ended[i] + atomic_load_explicit(&modules_unregistered_ends[i], memory_order_relaxed);
        for (const struct runtime_thread *thread = registry->threads; thread; thread = thread->next)
            ends[i] += atomic_load_explicit(&thread->ends[i], memory_order_relaxed) +
                       atomic_load_explicit(&thread->nested_ends[i], memory_order_relaxed);
    }
}

static_assert((int)QUT_END_REASON_COUNT <= sizeof((struct qut_stats *)0)->ends / sizeof(uint64_t),
              "every reason has its count");

void qut_get_stats(struct qut_stats *stats, size_t size)
{
    struct modules_registry *registry = &modules_registry;
    os_lock(&registry->lock);
    struct qut_stats now = registry->stats;
    modules_jit_fill_stats(&now);
    uintptr_t ends[QUT_END_REASON_COUNT];
    modules_registry_sum_ends(registry, ends);
    for (unsigned i = 0; i < QUT_END_REASON_COUNT; i++)
        now.ends[i] = ends[i] - registry->before[i];
    os_unlock(&registry->lock);
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof now ? size : sizeof now);
}

// ---- the thread

static bool asks_for_loader(struct modules_registry *registry)
{
    return atomic_load_explicit(&registry->asks_for_loader, memory_order_acquire) != 0;
}

void modules_registry_end_thread(struct modules_registry *registry, int patience_ms)
{
    atomic_store_explicit(&registry->stopping, 1, memory_order_release);
    os_lock(&registry->lock);
    struct os_thread *thread = registry->thread;
    registry->thread = NULL;
    os_unlock(&registry->lock);
    modules_registry_ring();
    if (thread && asks_for_loader(registry))
        os_wait(&registry->asks_for_loader, 1, patience_ms);
    if (thread && !asks_for_loader(registry)) // else it stays, with its stack, until the process ends
        os_thread_join(thread);
}

// A thread that stays would end the process later, in place of the program's last one, and what the program has not
// written yet would be lost: on a busy machine a thread that had just begun was met 100 ms later, still asking.
void modules_registry_pause_thread(void)
{
    enum { PATIENCE_MS = 10000 };
    struct modules_registry *registry = &modules_registry;
    os_lock(&registry->control);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed))
        modules_registry_end_thread(registry, PATIENCE_MS);
    os_unlock(&registry->control);
}

void modules_registry_resume_thread(void)
{
    struct modules_registry *registry = &modules_registry;
    os_lock(&registry->control);
    atomic_store_explicit(&registry->stopping, 0, memory_order_release);
    os_lock(&registry->lock);
    modules_registry_ensure_thread();
    os_unlock(&registry->lock);
    os_unlock(&registry->control);
}
