// SPDX-License-Identifier: Apache-2.0
// Walks on one side, freeing on the other. A walk marks that it runs, then takes the list. The freeing side first
// puts another list in its place, then looks at the marks: a marked walk may have taken the old one and is waited for;
// one that is not marked yet will take the new one. For this each side's store must come before its load. A registered
// thread pays for that with a fence that is none (os_fence_light), the freeing side with one that is heavy.
#include <stdlib.h>

#include "libqut/modules/registry.h"

// ---- threads that are not registered
//
// Two counters, one of them for the walks that begin now: so those that began before a moment drain away, however many
// begin after it. Which of the two each of a thread's walks counts in, the innermost in the lowest two bits:
enum { LEVEL_BITS = 2, LEVEL_USED = 2, LEVEL_INDEX = 1 };

static _Atomic uint32_t unregistered_walks[2];
static _Atomic uint32_t unregistered_index;

void modules_walk_enter_unregistered(void)
{
    uintptr_t levels = os_thread_word(OS_WORD_LEVELS);
    uint32_t index = atomic_load_explicit(&unregistered_index, memory_order_relaxed);
    atomic_fetch_add_explicit(&unregistered_walks[index], 1, memory_order_seq_cst);
    // A handler that comes in between leaves the levels as it finds them.
    os_set_thread_word(OS_WORD_LEVELS, levels << LEVEL_BITS | LEVEL_USED | index);
}

void modules_walk_leave_unregistered(void)
{
    uintptr_t levels = os_thread_word(OS_WORD_LEVELS);
    os_set_thread_word(OS_WORD_LEVELS, levels >> LEVEL_BITS);
    atomic_fetch_sub_explicit(&unregistered_walks[levels & LEVEL_INDEX], 1, memory_order_release);
}

// ---- freeing

void modules_registry_push_retired(struct modules_retired *retired)
{
    retired->next = modules_registry.retired;
    modules_registry.retired = retired;
}

void modules_registry_retire(struct modules_retired *retired)
{
    if (!retired)
        return;
    os_lock(&modules_registry.lock);
    modules_registry_push_retired(retired);
    os_unlock(&modules_registry.lock);
}

struct grace {
    uint32_t old_index;
    enum { OTHERS_DRAIN, OLD_DRAINS, UNREGISTERED_DONE } stage;
};

static void begin_grace(struct grace *grace)
{
    os_fence_heavy();
    for (struct runtime_thread *thread = modules_registry.threads; thread; thread = thread->next) {
        thread->grace_walks = atomic_load_explicit(&thread->walks, memory_order_acquire);
        thread->in_grace = atomic_load_explicit(&thread->walking, memory_order_acquire) != 0;
    }
    grace->stage = OTHERS_DRAIN;
    grace->old_index = atomic_load_explicit(&unregistered_index, memory_order_relaxed);
}

static bool drained(uint32_t index)
{
    return atomic_load_explicit(&unregistered_walks[index], memory_order_seq_cst) == 0;
}

// The counter that nothing is added to now may still have walks that read which to take before the last change, and
// added to it after: so both are waited for, that one first.
static bool unregistered_done(struct grace *grace)
{
    if (grace->stage == OTHERS_DRAIN && drained(grace->old_index ^ 1)) {
        atomic_store_explicit(&unregistered_index, grace->old_index ^ 1, memory_order_seq_cst);
        grace->stage = OLD_DRAINS;
    }
    if (grace->stage == OLD_DRAINS && drained(grace->old_index))
        grace->stage = UNREGISTERED_DONE;
    return grace->stage == UNREGISTERED_DONE;
}

static bool registered_done(void)
{
    bool done = true;
    for (struct runtime_thread *thread = modules_registry.threads; thread; thread = thread->next) {
        if (thread->in_grace)
            thread->in_grace = atomic_load_explicit(&thread->walking, memory_order_acquire) != 0 &&
                               atomic_load_explicit(&thread->walks, memory_order_acquire) == thread->grace_walks;
        done = done && !thread->in_grace;
    }
    return done;
}

static bool wait_for_walks(struct grace *grace, int patience_ms)
{
    enum { QUICK_LOOKS = 64 };
    uint64_t limit_ns = os_now_ns() + (uint64_t)patience_ms * 1000000u;
    for (unsigned look = 0;; look++) {
        os_lock(&modules_registry.lock);
        bool registered = registered_done(), unregistered = unregistered_done(grace);
        os_unlock(&modules_registry.lock);
        if (registered && unregistered)
            return true;
        if (os_now_ns() > limit_ns)
            return false;
        _Atomic uint32_t never = 0;
        if (look >= QUICK_LOOKS)
            os_wait(&never, 0, 1);
    }
}

static void put_back(struct modules_retired *batch)
{
    struct modules_retired **end = &modules_registry.retired;
    while (*end)
        end = &(*end)->next;
    *end = batch;
}

bool modules_registry_reclaim(int patience_ms)
{
    struct grace grace;
    os_lock(&modules_registry.lock);
    struct modules_retired *batch = modules_registry.retired;
    modules_registry.retired = NULL;
    if (batch)
        begin_grace(&grace);
    os_unlock(&modules_registry.lock);
    if (!batch)
        return true;
    if (!wait_for_walks(&grace, patience_ms)) {
        os_lock(&modules_registry.lock);
        put_back(batch);
        os_unlock(&modules_registry.lock);
        return false;
    }
    while (batch) {
        struct modules_retired *next = batch->next;
        batch->free(batch); // which holds the node itself
        batch = next;
    }
    return true;
}

void modules_walks_after_fork(void)
{
    uint32_t walks[2] = {0, 0};
    for (uintptr_t levels = os_thread_word(OS_WORD_LEVELS); levels; levels >>= LEVEL_BITS)
        walks[levels & LEVEL_INDEX]++;
    for (unsigned i = 0; i < 2; i++)
        atomic_store_explicit(&unregistered_walks[i], walks[i], memory_order_relaxed);
}
