// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/thread.h"

#include <errno.h>

#include "libqut/runtime/registry.h"

static void set_stack(struct qut_thread *thread, uintptr_t in_use)
{
    uintptr_t limit, high;
    // Not where it runs on a stack of its own making: what is known is the stack that the thread was created with.
    if (qut_os_stack_bounds(&limit, &high) && in_use >= limit && in_use < high) {
        thread->stack_limit = limit;
        thread->stack_low = in_use;
        thread->stack_high = high;
    }
}

static void link_thread(struct qut_registry *registry, struct qut_thread *thread)
{
    thread->next = registry->threads;
    thread->previous = NULL;
    if (thread->next)
        thread->next->previous = thread;
    registry->threads = thread;
}

static void unlink_thread(struct qut_registry *registry, struct qut_thread *thread)
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

_Atomic(void (*)(void)) qut_thread_end_hook_first;

static void drop(struct qut_thread *thread)
{
    void (*first)(void) = atomic_load_explicit(&qut_thread_end_hook_first, memory_order_acquire);
    if (first)
        first();
    const struct qut_watch *watch = atomic_load_explicit(&qut_registry_watch, memory_order_acquire);
    if (watch)
        watch->thread_ends();
    // From here on a handler's walk is one of a thread that is not registered.
    qut_thread_set_self(NULL);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_lock(&qut_registry.lock);
    unlink_thread(&qut_registry, thread);
    qut_os_unlock(&qut_registry.lock);
    qut_os_free_pages(thread, sizeof *thread);
}

static void at_thread_end(void *thread)
{
    qut_os_set_thread_word(QUT_OS_WORD_ENDING, 1);
    drop(thread);
}

int qut_thread_register(void)
{
    struct qut_registry *registry = &qut_registry;
    struct qut_thread *thread = qut_thread_self();
    int result = 0;
    if (!thread) {
        thread = qut_os_pages(sizeof *thread, true);
        if (!thread)
            return -ENOMEM;
        set_stack(thread, (uintptr_t)__builtin_frame_address(0));
        result = qut_os_at_thread_end(at_thread_end, thread);
        if (result != 0) {
            qut_os_free_pages(thread, sizeof *thread);
            return -ENOMEM;
        }
    }
    qut_os_lock(&registry->lock);
    if (!qut_thread_self())
        link_thread(registry, thread);
    qut_registry_ensure_thread();
    qut_os_unlock(&registry->lock);
    atomic_signal_fence(memory_order_seq_cst);
    qut_thread_set_self(thread);
    return 0;
}

void qut_thread_unregister(void)
{
    struct qut_thread *thread = qut_thread_self();
    if (!thread)
        return;
    qut_os_at_thread_end(at_thread_end, NULL);
    drop(thread);
}

void qut_threads_after_fork(void)
{
    struct qut_thread *next;
    for (struct qut_thread *thread = qut_registry.threads; thread; thread = next) {
        next = thread->next;
        if (thread == qut_thread_self())
            continue;
        unlink_thread(&qut_registry, thread);
        qut_os_free_pages(thread, sizeof *thread);
    }
}
