// SPDX-License-Identifier: Apache-2.0
// Keeping the list as it should be, step by step: by the thread, or by a caller of qut_refresh.
#include <errno.h>
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/modules/jit_registry.h"

enum {
    PUBLISH_EVERY_NS = 2000000, // at start there are many tables, each there in no time
    WALK_PATIENCE_MS = 2,       // for walks to end; what they hold is freed later then
    RECLAIM_EVERY_MS = 20,      // and more and more seldom
    RECLAIM_EVERY_MS_MAX = 1000,
    BACK_OFF_MS_MAX = 256,
};

void modules_registry_ring(void)
{
    atomic_fetch_add_explicit(&modules_registry.bell, 1, memory_order_release);
    os_wake(&modules_registry.bell);
}

// The one that was met last is the one that is being walked. Of others the smaller: while its table is read, whoever
// makes tables makes the larger ones.
static bool is_sooner(const struct modules_record *record, const struct modules_record *other)
{
    const struct modules_identity *one = &record->identity, *two = &other->identity;
    if (record->met_ns != other->met_ns)
        return record->met_ns > other->met_ns;
    return one->end - one->start < two->end - two->start;
}

static struct modules_record *next_pending(struct modules_registry *registry)
{
    struct modules_record *next = NULL;
    for (size_t i = 0; i < registry->record_count; i++) {
        struct modules_record *record = registry->records[i];
        if (record->state == RUNTIME_CODE_PENDING && (!next || is_sooner(record, next)))
            next = record;
    }
    return next;
}

static void publish_if_due(struct modules_registry *registry, bool at_once)
{
    if (registry->unpublished &&
        (at_once || !next_pending(registry) || os_now_ns() - registry->published_ns > PUBLISH_EVERY_NS))
        modules_registry_publish();
}

// Under work: no other thread changes or frees a record meanwhile.
static bool make_table(struct modules_registry *registry)
{
    os_lock(&registry->lock);
    struct modules_record *record = next_pending(registry);
    os_unlock(&registry->lock);
    if (!record)
        return false;
    struct runtime_stored_table stored = {0};
    char reason[sizeof record->reason] = "not in the cache directory, and there is no compiler";
    uint64_t compile_ns = 0;
    bool compiled = false, ready = modules_record_read_table(record, &stored) == 0;
    if (!ready && registry->compile) {
        os_lock(&registry->lock);
        publish_if_due(registry, true); // this may take long
        os_unlock(&registry->lock);
        compile_ns = os_now_ns();
        compiled = ready = modules_record_compile_table(record, &stored, reason, sizeof reason) == 0;
        compile_ns = os_now_ns() - compile_ns;
    }
    os_lock(&registry->lock);
    record->state = ready ? RUNTIME_CODE_READY : RUNTIME_CODE_NO_TABLE;
    record->stored = stored;
    if (!ready)
        memcpy(record->reason, reason, sizeof record->reason);
    registry->stats.tables_cached += ready && !compiled;
    registry->stats.tables_compiled += compiled;
    registry->stats.compile_ns += compile_ns;
    registry->unpublished = true;
    publish_if_due(registry, false);
    os_unlock(&registry->lock);
    return true;
}

static int sooner(int ms, int other_ms)
{
    return ms < 0 ? other_ms : other_ms < 0 || ms < other_ms ? ms : other_ms;
}

enum modules_step modules_registry_step(int *wait_ms)
{
    struct modules_registry *registry = &modules_registry;
    enum modules_step step = MODULES_STEP_NOTHING;
    int ranges_ms = -1, machine_ms = -1;
    *wait_ms = -1;
    os_lock(&registry->work);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        if (atomic_load_explicit(&registry->wanted, memory_order_acquire)) {
            int changes = modules_registry_scan();
            step = changes == 0 && !registry->loader.is_known ? MODULES_STEP_SCAN_POINTLESS : MODULES_STEP_SCAN;
        } else if (make_table(registry)) {
            step = MODULES_STEP_TABLE;
        } else if (modules_code_ranges_step(&ranges_ms) || modules_machine_step(&machine_ms) ||
                   modules_jit_step(wait_ms)) {
            step = MODULES_STEP_JIT;
        }
        *wait_ms = sooner(sooner(*wait_ms, ranges_ms), machine_ms);
        if (step != MODULES_STEP_NOTHING) {
            modules_registry_touch();
            modules_registry_reclaim(WALK_PATIENCE_MS);
        }
    }
    os_unlock(&registry->work);
    return step;
}

// ---- the thread

static bool reclaim_idle(void)
{
    os_lock(&modules_registry.work);
    bool done = modules_registry_reclaim(WALK_PATIENCE_MS);
    os_unlock(&modules_registry.work);
    return done;
}

// What is due of other parts; returns in how many ms again, -1: never.
static int maintain(void)
{
    const struct modules_watch *watch = atomic_load_explicit(&modules_registry_watch, memory_order_acquire);
    if (!watch)
        return -1;
    os_lock(&modules_registry.work);
    int due_ms = watch->maintain();
    os_unlock(&modules_registry.work);
    return due_ms;
}

static int now_and_then(void)
{
    host_registry_call call = atomic_load_explicit(&modules_registry_now_and_then, memory_order_acquire);
    return call ? call() : -1;
}

static int twice(int ms, int least, int most)
{
    return ms == 0 ? least : ms * 2 < most ? ms * 2 : most;
}

static void look_after_modules(void *context)
{
    struct modules_registry *registry = context;
    int back_off_ms = 0, reclaim_ms = 0;
    if (registry->is_child) {
        os_await_loader();
        atomic_store_explicit(&registry->asks_for_loader, 0, memory_order_release);
        os_wake(&registry->asks_for_loader);
    }
    for (;;) {
        uint32_t bell = atomic_load_explicit(&registry->bell, memory_order_acquire);
        if (atomic_load_explicit(&registry->stopping, memory_order_acquire))
            return;
        int due_ms;
        enum modules_step step = modules_registry_step(&due_ms);
        if (step == MODULES_STEP_SCAN_POINTLESS) {
            // Without a generation, code that belongs to no module makes every walk ask. It shall not keep us busy.
            back_off_ms = twice(back_off_ms, 1, BACK_OFF_MS_MAX);
            atomic_store_explicit(&registry->wanted, 1, memory_order_relaxed);
            os_wait(&registry->bell, bell, back_off_ms);
            atomic_store_explicit(&registry->wanted, 0, memory_order_relaxed);
            continue;
        }
        if (step != MODULES_STEP_NOTHING) {
            back_off_ms = reclaim_ms = 0;
            continue;
        }
        reclaim_ms = reclaim_idle() ? 0 : twice(reclaim_ms, RECLAIM_EVERY_MS, RECLAIM_EVERY_MS_MAX);
        due_ms = sooner(sooner(due_ms, reclaim_ms ? reclaim_ms : -1), maintain());
        due_ms = sooner(due_ms, now_and_then());
        os_wait(&registry->bell, bell, due_ms);
    }
}

int modules_registry_ensure_thread(void)
{
    struct modules_registry *registry = &modules_registry;
    if (registry->thread || (registry->flags & QUT_START_NO_THREAD) ||
        !atomic_load_explicit(&registry->started, memory_order_relaxed) ||
        atomic_load_explicit(&registry->stopping, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&registry->asks_for_loader, registry->is_child, memory_order_relaxed);
    if (registry->lost)
        os_thread_forget(registry->lost);
    registry->lost = NULL;
    return os_thread_start(&registry->thread, look_after_modules, registry);
}

// ---- for all callers

static void ensure_thread(void)
{
    os_lock(&modules_registry.lock);
    modules_registry_ensure_thread();
    os_unlock(&modules_registry.lock);
}

int qut_refresh(void)
{
    struct modules_registry *registry = &modules_registry;
    if (!atomic_load_explicit(&registry->started, memory_order_acquire)) {
        maintain(); // which does not need modules
        return -EINVAL;
    }
    ensure_thread();
    atomic_store_explicit(&registry->wanted, 1, memory_order_release);
    os_lock(&registry->work);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed))
        modules_code_ranges_read();
    os_unlock(&registry->work);
    int wait_ms;
    while (modules_registry_step(&wait_ms) != MODULES_STEP_NOTHING) {
    }
    os_lock(&registry->work);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        modules_jit_refresh();
        modules_registry_reclaim(WALK_PATIENCE_MS);
    }
    os_unlock(&registry->work);
    maintain();
    os_lock(&registry->lock);
    int without = (int)registry->stats.no_table_count;
    os_unlock(&registry->lock);
    return without;
}

// Whether a table is pending, or may be: a module can have come that was not met yet.
static bool is_pending(struct modules_registry *registry)
{
    const struct modules *modules = modules_enter(runtime_thread_self());
    bool newer = modules && modules->loader.is_known && !modules_up_to_date(modules);
    modules_leave(runtime_thread_self());
    if (newer)
        modules_want_refresh();
    os_lock(&registry->lock);
    bool pending = registry->stats.pending_count > 0 || modules_jit.waiting_next < modules_jit.waiting_count;
    os_unlock(&registry->lock);
    return newer || pending;
}

// A compiler may register code all the time: only what is there now is waited for. The reading that will bring it; 0:
// it is known.
static uint32_t reading_to_wait_for(void)
{
    os_lock(&modules_registry.lock);
    size_t list_count = modules_jit.list_count;
    os_unlock(&modules_registry.lock);
    if (list_count == 0)
        return 0;
    modules_enter(runtime_thread_self());
    bool is_stale = modules_jit_is_stale();
    modules_leave(runtime_thread_self());
    if (!is_stale && atomic_load_explicit(&modules_jit.wanted, memory_order_acquire) == 0)
        return 0;
    uint32_t number = atomic_load_explicit(&modules_jit.begun, memory_order_acquire) + 1;
    modules_jit_want(MODULES_JIT_WANT);
    return number;
}

static bool is_read(uint32_t number)
{
    return number == 0 || (int32_t)(atomic_load_explicit(&modules_jit.done, memory_order_acquire) - number) >= 0;
}

int qut_wait(int timeout_ms)
{
    struct modules_registry *registry = &modules_registry;
    if (!atomic_load_explicit(&registry->started, memory_order_acquire))
        return -EINVAL;
    ensure_thread();
    uint64_t limit_ns = os_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000u;
    uint32_t reading = reading_to_wait_for();
    for (;;) {
        uint32_t progress = atomic_load_explicit(&registry->progress, memory_order_acquire);
        bool is_done = !is_pending(registry) && is_read(reading);
        if (!atomic_load_explicit(&registry->started, memory_order_acquire) || is_done)
            return 0;
        uint64_t now_ns = os_now_ns();
        if ((timeout_ms >= 0 && now_ns >= limit_ns) || (registry->flags & QUT_START_NO_THREAD))
            return -ETIMEDOUT;
        int rest_ms = timeout_ms < 0 ? -1 : (int)((limit_ns - now_ns + 999999u) / 1000000u);
        os_wait(&registry->progress, progress, rest_ms);
    }
}
