// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/walking_thread.h"

#include <errno.h>

#include "libqut/modules/registry.h"

static void set_stack(struct runtime_thread *thread, uintptr_t in_use)
{
    uintptr_t limit, high;
    // Not where it runs on a stack of its own making: what is known is the stack that the thread was created with.
    if (os_stack_bounds(&limit, &high) && in_use >= limit && in_use < high) {
        thread->stack_limit = limit;
        thread->stack_low = in_use;
        thread->stack_high = high;
    }
}

static void link_thread(struct modules_registry *registry, struct runtime_thread *thread)
{
    thread->next = registry->threads;
    thread->previous = NULL;
    if (thread->next)
        thread->next->previous = thread;
    registry->threads = thread;
}

static void unlink_thread(struct modules_registry *registry, struct runtime_thread *thread)
{
    if (thread->next)
        thread->next->previous = thread->previous;
    if (thread->previous)
        thread->previous->next = thread->next;
    else
        registry->threads = thread->next;
    for (unsigned i = 0; i < QUT_END_REASON_COUNT; i++)
        registry->ended[i] += atomic_load_explicit(&thread->ends[i], memory_order_relaxed) +
                              atomic_load_explicit(&thread->nested_ends[i], memory_order_relaxed);
}

_Atomic(void (*)(void)) modules_thread_end_hook_first;

// What many threads never use.
struct seldom {
    struct runtime_hashed_rules hashed;
    struct runtime_seen_steps seen;
    struct runtime_known_rules rules;
    struct runtime_trail trail;
};
static_assert(offsetof(struct seldom, hashed) == 0, "freed by it");

static struct runtime_thread *new_thread(void)
{
    struct runtime_thread *thread = os_pages(sizeof *thread, true);
    struct seldom *seldom = thread ? os_reserve(sizeof *seldom) : NULL;
    if (seldom) { // without it, walks go by links and make slow steps anew, whatever that costs
        thread->hashed = &seldom->hashed;
        thread->seen = &seldom->seen;
        thread->rules = &seldom->rules;
        thread->trail = &seldom->trail;
    }
    return thread;
}

static void free_thread(struct runtime_thread *thread)
{
    os_free_pages(thread->hashed, sizeof(struct seldom));
    os_free_pages(thread, sizeof *thread);
}

static void drop(struct runtime_thread *thread)
{
    void (*first)(void) = atomic_load_explicit(&modules_thread_end_hook_first, memory_order_acquire);
    if (first)
        first();
    const struct modules_watch *watch = atomic_load_explicit(&modules_registry_watch, memory_order_acquire);
    if (watch)
        watch->thread_ends();
    // From here on a handler's walk is one of a thread that is not registered.
    runtime_thread_set_self(NULL);
    atomic_signal_fence(memory_order_seq_cst);
    os_lock(&modules_registry.lock);
    unlink_thread(&modules_registry, thread);
    os_unlock(&modules_registry.lock);
    free_thread(thread);
}

static void at_thread_end(void *thread)
{
    os_set_thread_word(OS_WORD_ENDING, 1);
    drop(thread);
}

int qut_thread_register(void)
{
    struct modules_registry *registry = &modules_registry;
    struct runtime_thread *thread = runtime_thread_self();
    int result = 0;
    if (!thread) {
        thread = new_thread();
        if (!thread)
            return -ENOMEM;
        set_stack(thread, (uintptr_t)__builtin_frame_address(0));
        result = os_at_thread_end(at_thread_end, thread);
        if (result != 0) {
            free_thread(thread);
            return -ENOMEM;
        }
    }
    os_lock(&registry->lock);
    if (!runtime_thread_self())
        link_thread(registry, thread);
    modules_registry_ensure_thread();
    os_unlock(&registry->lock);
    atomic_signal_fence(memory_order_seq_cst);
    runtime_thread_set_self(thread);
    return 0;
}

void qut_thread_unregister(void)
{
    struct runtime_thread *thread = runtime_thread_self();
    if (!thread)
        return;
    os_at_thread_end(at_thread_end, NULL);
    drop(thread);
}

void modules_threads_after_fork(void)
{
    struct runtime_thread *next;
    for (struct runtime_thread *thread = modules_registry.threads; thread; thread = next) {
        next = thread->next;
        if (thread == runtime_thread_self())
            continue;
        unlink_thread(&modules_registry, thread);
        free_thread(thread);
    }
}
