// SPDX-License-Identifier: Apache-2.0
// Keeping the list as it should be, step by step: by the thread, or by who calls qut_refresh.
#include <errno.h>
#include <string.h>

#include "libqut/runtime/jit_registry.h"

enum {
    PUBLISH_EVERY_NS = 2000000, // at start there are many tables, each there in no time
    WALK_PATIENCE_MS = 2,       // for walks to end; what they hold is freed later then
    RECLAIM_EVERY_MS = 20,      // and more and more seldom
    RECLAIM_EVERY_MS_MAX = 1000,
    BACK_OFF_MS_MAX = 256,
};

void qut_registry_ring(void)
{
    atomic_fetch_add_explicit(&qut_registry.bell, 1, memory_order_release);
    qut_os_wake(&qut_registry.bell);
}

// The one that was met last is the one that is being walked.
static struct qut_record *next_pending(struct qut_registry *registry)
{
    struct qut_record *next = NULL;
    for (size_t i = 0; i < registry->record_count; i++) {
        struct qut_record *record = registry->records[i];
        if (record->state == QUT_CODE_PENDING && (!next || record->met_ns > next->met_ns))
            next = record;
    }
    return next;
}

static void publish_if_due(struct qut_registry *registry, bool at_once)
{
    if (registry->unpublished &&
        (at_once || !next_pending(registry) || qut_os_now_ns() - registry->published_ns > PUBLISH_EVERY_NS))
        qut_registry_publish();
}

// Under work: nobody else changes or frees a record meanwhile.
static bool make_table(struct qut_registry *registry)
{
    qut_os_lock(&registry->lock);
    struct qut_record *record = next_pending(registry);
    qut_os_unlock(&registry->lock);
    if (!record)
        return false;
    struct qut_stored_table stored = {0};
    char reason[sizeof record->reason] = "not in the cache directory, and there is no compiler";
    uint64_t compile_ns = 0;
    bool compiled = false, ready = qut_record_read_table(record, &stored) == 0;
    if (!ready && registry->compile) {
        qut_os_lock(&registry->lock);
        publish_if_due(registry, true); // this may take long
        qut_os_unlock(&registry->lock);
        compile_ns = qut_os_now_ns();
        compiled = ready = qut_record_compile_table(record, &stored, reason, sizeof reason) == 0;
        compile_ns = qut_os_now_ns() - compile_ns;
    }
    qut_os_lock(&registry->lock);
    record->state = ready ? QUT_CODE_READY : QUT_CODE_NO_TABLE;
    record->stored = stored;
    if (!ready)
        memcpy(record->reason, reason, sizeof record->reason);
    registry->stats.tables_cached += ready && !compiled;
    registry->stats.tables_compiled += compiled;
    registry->stats.compile_ns += compile_ns;
    registry->unpublished = true;
    publish_if_due(registry, false);
    qut_os_unlock(&registry->lock);
    return true;
}

enum qut_step qut_registry_step(int *wait_ms)
{
    struct qut_registry *registry = &qut_registry;
    enum qut_step step = QUT_STEP_NOTHING;
    *wait_ms = -1;
    qut_os_lock(&registry->work);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        if (atomic_load_explicit(&registry->wanted, memory_order_acquire)) {
            int changes = qut_registry_scan();
            step = changes == 0 && !registry->loader.is_known ? QUT_STEP_SCAN_POINTLESS : QUT_STEP_SCAN;
        } else if (make_table(registry)) {
            step = QUT_STEP_TABLE;
        } else if (qut_jit_step(wait_ms)) {
            step = QUT_STEP_JIT;
        }
        if (step != QUT_STEP_NOTHING)
            qut_registry_reclaim(WALK_PATIENCE_MS);
    }
    qut_os_unlock(&registry->work);
    return step;
}

// ---- the thread

static bool reclaim_idle(void)
{
    qut_os_lock(&qut_registry.work);
    bool done = qut_registry_reclaim(WALK_PATIENCE_MS);
    qut_os_unlock(&qut_registry.work);
    return done;
}

// What is due of somebody else's; returns in how many ms again, -1: never.
static int maintain(void)
{
    const struct qut_watch *watch = atomic_load_explicit(&qut_registry_watch, memory_order_acquire);
    if (!watch)
        return -1;
    qut_os_lock(&qut_registry.work);
    int due_ms = watch->maintain();
    qut_os_unlock(&qut_registry.work);
    return due_ms;
}

static int now_and_then(void)
{
    qut_registry_call call = atomic_load_explicit(&qut_registry_now_and_then, memory_order_acquire);
    return call ? call() : -1;
}

static int sooner(int ms, int other_ms)
{
    return ms < 0 ? other_ms : other_ms < 0 || ms < other_ms ? ms : other_ms;
}

static int twice(int ms, int least, int most)
{
    return ms == 0 ? least : ms * 2 < most ? ms * 2 : most;
}

static void look_after_modules(void *context)
{
    struct qut_registry *registry = context;
    int back_off_ms = 0, reclaim_ms = 0;
    if (registry->is_child) {
        qut_os_await_loader();
        atomic_store_explicit(&registry->asks_for_loader, 0, memory_order_release);
        qut_os_wake(&registry->asks_for_loader);
    }
    for (;;) {
        uint32_t bell = atomic_load_explicit(&registry->bell, memory_order_acquire);
        if (atomic_load_explicit(&registry->stopping, memory_order_acquire))
            return;
        int due_ms;
        enum qut_step step = qut_registry_step(&due_ms);
        if (step == QUT_STEP_SCAN_POINTLESS) {
            // Without a generation, code that belongs to no module makes every walk ask. It shall not keep us busy.
            back_off_ms = twice(back_off_ms, 1, BACK_OFF_MS_MAX);
            atomic_store_explicit(&registry->wanted, 1, memory_order_relaxed);
            qut_os_wait(&registry->bell, bell, back_off_ms);
            atomic_store_explicit(&registry->wanted, 0, memory_order_relaxed);
            continue;
        }
        if (step != QUT_STEP_NOTHING) {
            back_off_ms = reclaim_ms = 0;
            continue;
        }
        reclaim_ms = reclaim_idle() ? 0 : twice(reclaim_ms, RECLAIM_EVERY_MS, RECLAIM_EVERY_MS_MAX);
        due_ms = sooner(sooner(due_ms, reclaim_ms ? reclaim_ms : -1), maintain());
        due_ms = sooner(due_ms, now_and_then());
        qut_os_wait(&registry->bell, bell, due_ms);
    }
}

int qut_registry_ensure_thread(void)
{
    struct qut_registry *registry = &qut_registry;
    if (registry->thread || (registry->flags & QUT_START_NO_THREAD) ||
        !atomic_load_explicit(&registry->started, memory_order_relaxed) ||
        atomic_load_explicit(&registry->stopping, memory_order_relaxed))
        return 0;
    atomic_store_explicit(&registry->asks_for_loader, registry->is_child, memory_order_relaxed);
    return qut_os_thread_start(&registry->thread, look_after_modules, registry);
}

// ---- for everybody

static void ensure_thread(void)
{
    qut_os_lock(&qut_registry.lock);
    qut_registry_ensure_thread();
    qut_os_unlock(&qut_registry.lock);
}

int qut_refresh(void)
{
    struct qut_registry *registry = &qut_registry;
    if (!atomic_load_explicit(&registry->started, memory_order_acquire)) {
        maintain(); // which does not need modules
        return -EINVAL;
    }
    ensure_thread();
    atomic_store_explicit(&registry->wanted, 1, memory_order_release);
    int wait_ms;
    while (qut_registry_step(&wait_ms) != QUT_STEP_NOTHING) {
    }
    qut_os_lock(&registry->work);
    if (atomic_load_explicit(&registry->started, memory_order_relaxed)) {
        qut_jit_refresh();
        qut_registry_reclaim(WALK_PATIENCE_MS);
    }
    qut_os_unlock(&registry->work);
    maintain();
    qut_os_lock(&registry->lock);
    int without = (int)registry->stats.no_table_count;
    qut_os_unlock(&registry->lock);
    return without;
}

// Whether a table is pending, or may be: a module can have come that was not met yet.
static bool is_pending(struct qut_registry *registry)
{
    const struct qut_modules *modules = qut_modules_enter(qut_thread_self());
    bool newer = modules && modules->loader.is_known && !qut_modules_up_to_date(modules);
    qut_modules_leave(qut_thread_self());
    if (newer)
        qut_modules_want_refresh();
    qut_os_lock(&registry->lock);
    bool pending = registry->stats.pending_count > 0 || qut_jit.waiting_next < qut_jit.waiting_count;
    qut_os_unlock(&registry->lock);
    return newer || pending;
}

// A compiler may register code all the time: only what is there now is waited for. The reading that will bring it; 0:
// it is known.
static uint32_t reading_to_wait_for(void)
{
    qut_os_lock(&qut_registry.lock);
    size_t list_count = qut_jit.list_count;
    qut_os_unlock(&qut_registry.lock);
    if (list_count == 0)
        return 0;
    qut_modules_enter(qut_thread_self());
    bool is_stale = qut_jit_is_stale();
    qut_modules_leave(qut_thread_self());
    if (!is_stale && atomic_load_explicit(&qut_jit.wanted, memory_order_acquire) == 0)
        return 0;
    uint32_t number = atomic_load_explicit(&qut_jit.begun, memory_order_acquire) + 1;
    qut_jit_want(QUT_JIT_WANT);
    return number;
}

static bool is_read(uint32_t number)
{
    return number == 0 || (int32_t)(atomic_load_explicit(&qut_jit.done, memory_order_acquire) - number) >= 0;
}

int qut_wait(int timeout_ms)
{
    struct qut_registry *registry = &qut_registry;
    if (!atomic_load_explicit(&registry->started, memory_order_acquire))
        return -EINVAL;
    ensure_thread();
    uint64_t limit_ns = qut_os_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000u;
    uint32_t reading = reading_to_wait_for();
    for (;;) {
        uint32_t progress = atomic_load_explicit(&registry->progress, memory_order_acquire);
        bool is_done = !is_pending(registry) && is_read(reading);
        if (!atomic_load_explicit(&registry->started, memory_order_acquire) || is_done)
            return 0;
        uint64_t now_ns = qut_os_now_ns();
        if ((timeout_ms >= 0 && now_ns >= limit_ns) || (registry->flags & QUT_START_NO_THREAD))
            return -ETIMEDOUT;
        int rest_ms = timeout_ms < 0 ? -1 : (int)((limit_ns - now_ns + 999999u) / 1000000u);
        qut_os_wait(&registry->progress, progress, rest_ms);
    }
}
