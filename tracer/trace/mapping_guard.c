// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/mapping_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARDS = 16384 }; // a recorder has three for each process that runs

// The handler reads these: `start` is written last, and cleared first. 1: being filled.
struct guard {
    _Atomic uintptr_t start;
    _Atomic size_t size;
    _Atomic bool was_hit;
};

static struct guard guards[GUARDS];
static struct sigaction previous;
static uintptr_t page_bytes;

static bool put_zeros(uintptr_t address)
{
    for (size_t i = 0; i < GUARDS; i++) {
        struct guard *guard = &guards[i];
        uintptr_t start = atomic_load_explicit(&guard->start, memory_order_acquire);
        if (start <= 1 || address - start >= atomic_load_explicit(&guard->size, memory_order_relaxed))
            continue;
        void *page = (void *)(address & ~(page_bytes - 1));
        // mmap is a bare system call: a handler may make it.
        if (mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
            return false;
        atomic_store_explicit(&guard->was_hit, true, memory_order_relaxed);
        return true;
    }
    return false;
}

static void on_bus_error(int number, siginfo_t *information, void *context)
{
    (void)context;
    // Of another: it happens again when this returns, to the handler that dealt with it before.
    if (!put_zeros((uintptr_t)information->si_addr))
        sigaction(number, &previous, NULL);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, &previous);
}

struct guard *trace_guard_begin(void *mapping, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    for (size_t i = 0; i < GUARDS; i++) {
        struct guard *guard = &guards[i];
        uintptr_t free = 0;
        if (atomic_load_explicit(&guard->start, memory_order_relaxed) != free)
            continue;
        if (!atomic_compare_exchange_strong_explicit(&guard->start, &free, 1, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        atomic_store_explicit(&guard->size, size, memory_order_relaxed);
        atomic_store_explicit(&guard->was_hit, false, memory_order_relaxed);
        atomic_store_explicit(&guard->start, (uintptr_t)mapping, memory_order_release);
        return guard;
    }
    return NULL;
}

bool trace_guard_was_hit(const struct guard *guard)
{
    atomic_signal_fence(memory_order_seq_cst); // what was read before came before
    return guard && atomic_load_explicit(&guard->was_hit, memory_order_relaxed);
}

void trace_guard_end(struct guard *guard)
{
    if (guard)
        atomic_store_explicit(&guard->start, 0, memory_order_release);
}
