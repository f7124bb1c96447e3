// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libqut/os/os.h"

// ---- stacks

bool os_stack_bounds(uintptr_t *limit, uintptr_t *high)
{
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    void *address;
    size_t size;
    int failed = pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    if (failed || size == 0 || (uintptr_t)address + size < (uintptr_t)address)
        return false;
    *limit = (uintptr_t)address;
    *high = (uintptr_t)address + size;
    return true;
}

// HWCAP is not enough: it stays set where the kernel has switched vectors off for a thread, and early kernels set it
// for vectors that have no such register. Those kernels, and qemu, do not know this call.
bool os_vectors_are_on(void)
{
    enum { RISCV_V_GET_CONTROL = 70, CURRENT_MASK = 3, IS_ON = 2 }; // of <linux/prctl.h>, since 6.5
    int saved_errno = errno;
    long state = syscall(SYS_prctl, RISCV_V_GET_CONTROL, 0, 0, 0, 0);
    errno = saved_errno;
    return state >= 0 && (state & CURRENT_MASK) == IS_ON;
}

bool os_alternate_stack(uintptr_t *low, uintptr_t *high)
{
    int saved_errno = errno;
    stack_t stack;
    // Not the function of libc, which a sanitizer may have replaced.
    bool on_it = syscall(SYS_sigaltstack, NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
    errno = saved_errno;
    if (!on_it)
        return false;
    *low = (uintptr_t)stack.ss_sp;
    *high = (uintptr_t)stack.ss_sp + stack.ss_size;
    return true;
}

// ---- threads

struct os_thread {
    pthread_t id;
    void (*body)(void *);
    void *argument;
    void *stack;
};

struct os_thread_hooks os_thread_hooks;

// A compiler runs on it: room for that, though only what is touched costs memory.
// Not libc's, which would keep it for later threads when this one has ended.
enum { THREAD_STACK_BYTES = 1 << 20, GUARD_BYTES = 64 << 10 };

static void *run_thread(void *context)
{
    struct os_thread *thread = context;
    prctl(PR_SET_NAME, "qut", 0, 0, 0);
    // The thread that starts it may have blocked all signals that the kernel knows. Two of them are libc's own: it
    // sends them to each thread when one changes the process's user (setuid), and waits for their handlers.
    uint64_t libcs = UINT64_C(3) << 31;
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &libcs, NULL, sizeof libcs);
    if (os_thread_hooks.begins)
        os_thread_hooks.begins();
    thread->body(thread->argument);
    if (os_thread_hooks.ends)
        os_thread_hooks.ends();
    return NULL;
}

static int start(struct os_thread *thread)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    sigset_t all, before;
    error = pthread_attr_setstack(&attributes, (char *)thread->stack + GUARD_BYTES, THREAD_STACK_BYTES);
    if (!error) {
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        error = pthread_create(&thread->id, &attributes, run_thread, thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

static void free_thread(struct os_thread *thread)
{
    if (thread->stack)
        munmap(thread->stack, GUARD_BYTES + THREAD_STACK_BYTES);
    free(thread);
}

int os_thread_start(struct os_thread **out, void (*body)(void *), void *argument)
{
    struct os_thread *thread = malloc(sizeof *thread);
    if (!thread)
        return -ENOMEM;
    *thread = (struct os_thread){.body = body, .argument = argument};
    void *stack = mmap(NULL, GUARD_BYTES + THREAD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    thread->stack = stack == MAP_FAILED ? NULL : stack;
    int error = ENOMEM;
    if (thread->stack && mprotect(stack, GUARD_BYTES, PROT_NONE) == 0)
        error = start(thread);
    if (error) {
        free_thread(thread);
        return os_failed_with(SYS_clone, error);
    }
    *out = thread;
    return 0;
}

void os_thread_join(struct os_thread *thread)
{
    pthread_join(thread->id, NULL);
    free_thread(thread);
}

void os_thread_forget(struct os_thread *thread)
{
    free_thread(thread);
}

// ---- waiting

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const void *timeout)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void os_wait(_Atomic uint32_t *word, uint32_t value, int timeout_ms)
{
    // What SYS_futex takes, whatever the width of libc's time_t.
    struct {
        long seconds, nanoseconds;
    } timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000l};
    int saved_errno = errno;
    futex(word, FUTEX_WAIT, value, timeout_ms < 0 ? NULL : &timeout);
    errno = saved_errno;
}

void os_wake(_Atomic uint32_t *word)
{
    int saved_errno = errno;
    futex(word, FUTEX_WAKE, INT_MAX, NULL);
    errno = saved_errno;
}

enum { FREE = 0, HELD = 1, HELD_AND_WAITED_FOR = 2 };

bool os_try_lock(_Atomic uint32_t *lock)
{
    uint32_t state = FREE;
    return atomic_compare_exchange_strong_explicit(lock, &state, HELD, memory_order_acquire, memory_order_relaxed);
}

void os_lock(_Atomic uint32_t *lock)
{
    if (os_try_lock(lock))
        return;
    while (atomic_exchange_explicit(lock, HELD_AND_WAITED_FOR, memory_order_acquire) != FREE)
        os_wait(lock, HELD_AND_WAITED_FOR, -1);
}

void os_unlock(_Atomic uint32_t *lock)
{
    if (atomic_exchange_explicit(lock, FREE, memory_order_release) == HELD_AND_WAITED_FOR)
        os_wake(lock);
}

uint64_t os_now_ns(void)
{
    int saved_errno = errno;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    errno = saved_errno;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- what libc shall call

static pthread_key_t end_key;
static pthread_once_t end_key_once = PTHREAD_ONCE_INIT;
static bool end_key_exists;
static _Atomic(void (*)(void *)) end_function; // always the same

static void create_end_key(void)
{
    end_key_exists = pthread_key_create(&end_key, atomic_load_explicit(&end_function, memory_order_relaxed)) == 0;
}

// When the library is unloaded: threads that end later must not call what is no longer there.
__attribute__((destructor)) static void delete_end_key(void)
{
    if (end_key_exists)
        pthread_key_delete(end_key);
    end_key_exists = false;
}

int os_at_thread_end(void (*function)(void *), void *value)
{
    atomic_store_explicit(&end_function, function, memory_order_relaxed);
    pthread_once(&end_key_once, create_end_key);
    return end_key_exists ? -pthread_setspecific(end_key, value) : -ENOMEM;
}

int os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    return -pthread_atfork(before, in_parent, in_child);
}
