// SPDX-License-Identifier: Apache-2.0
// The family of malloc; new and delete come through it. Totals are exact: what was asked for, each time it was given.
// Freed bytes are what malloc_usable_size says, which can be some more than was asked for; 0 where `free` and
// `malloc_usable_size` are not of one allocator.
//
// An allocator that the program defines itself is never seen (its functions come before ours); one in a library stands
// behind ours.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/hooks/hook_map.h"
#include "agent/inside.h"
#include "agent/real.h"

// ---- before libc's functions are known: looking them up may allocate

enum { EARLY_BYTES = 16 << 10, EARLY_ALIGNMENT = 16 };
static _Alignas(EARLY_ALIGNMENT) char early[EARLY_BYTES];
static _Atomic size_t early_used;

static bool is_early(const void *bytes)
{
    return (uintptr_t)bytes - (uintptr_t)early < EARLY_BYTES;
}

// Zeroed, never given back. A word before it says how large it is.
__attribute__((noinline, cold)) static void *take_early(size_t size)
{
    size_t whole = size + 2 * EARLY_ALIGNMENT - 1;
    if (whole < size || whole > EARLY_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    whole &= ~(size_t)(EARLY_ALIGNMENT - 1);
    size_t at = atomic_fetch_add_explicit(&early_used, whole, memory_order_relaxed);
    if (at > EARLY_BYTES - whole) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(early + at, &size, sizeof size);
    return early + at + EARLY_ALIGNMENT;
}

__attribute__((noinline, cold)) static void *leave_early(const void *bytes, size_t size)
{
    size_t old_size;
    memcpy(&old_size, (const char *)bytes - EARLY_ALIGNMENT, sizeof old_size);
    void *copy = agent_real()->malloc ? agent_real()->malloc(size) : take_early(size);
    if (copy)
        memcpy(copy, bytes, old_size < size ? old_size : size);
    return copy;
}

// ---- what is told

enum { APART_FRAMES = 1 }; // between the hook and what takes the sample

static inline __attribute__((always_inline)) void was_allocated(const void *bytes, size_t size, uint32_t frames)
{
    if (!bytes || !agent_enter(AGENT_SYNC_ALLOCATE))
        return;
    if (__builtin_expect(qut_sync_hit(QUT_TOTAL_ALLOCATIONS, size), 0))
        agent_take_memory(QUT_SAMPLE_ALLOCATE, bytes, size, frames);
    agent_leave();
}

// Sizes are asked only of the allocator that frees.
static _Atomic uint8_t known_sizes; // 1: no, 2: yes

__attribute__((noinline)) static bool ask_for_sizes(void)
{
    Dl_info of_free, of_size;
    const struct agent_real *real = agent_real();
    bool is_one = real->malloc_usable_size && dladdr((void *)(uintptr_t)real->free, &of_free) &&
                  dladdr((void *)(uintptr_t)real->malloc_usable_size, &of_size) &&
                  of_free.dli_fbase == of_size.dli_fbase;
    atomic_store_explicit(&known_sizes, is_one ? 2 : 1, memory_order_relaxed);
    return is_one;
}

static inline bool sizes_are_known(void)
{
    uint8_t now = atomic_load_explicit(&known_sizes, memory_order_relaxed);
    return __builtin_expect(now != 0, 1) ? now == 2 : ask_for_sizes();
}

static size_t size_of(void *bytes)
{
    return sizes_are_known() ? agent_real()->malloc_usable_size(bytes) : 0;
}

// Before it is given back: another thread may have it the moment after.
static inline __attribute__((always_inline)) void will_be_freed(void *bytes)
{
    if (!agent_enter(AGENT_SYNC_ALLOCATE))
        return;
    size_t size = size_of(bytes);
    if (__builtin_expect(qut_sync_hit(QUT_TOTAL_FREES, size), 0))
        agent_take_memory(QUT_SAMPLE_FREE, bytes, size, APART_FRAMES);
    agent_leave();
}

// ---- hooks

// Whether libc's function is known, and its callers are not asked for: then the hook is one jump more.
#define PASSES(name)                                                                                                   \
    __builtin_expect(agent_real_functions.name != NULL &&                                                              \
                         !(__atomic_load_n(&agent_watched, __ATOMIC_RELAXED) & AGENT_SYNC_ALLOCATE),                   \
                     1)

// What is told is apart, so that the rest needs no frame; and is called, not jumped to, so that stacks have the hook.
#define APART __attribute__((noinline)) static
#define STAYS __asm__ volatile("")

APART void *told_malloc(size_t size)
{
    const struct agent_real *real = agent_real();
    if (!real->malloc)
        return take_early(size);
    void *bytes = real->malloc(size);
    was_allocated(bytes, size, APART_FRAMES);
    return bytes;
}

EXPORTED void *malloc(size_t size)
{
    if (PASSES(malloc))
        return agent_real_functions.malloc(size);
    void *bytes = told_malloc(size);
    STAYS;
    return bytes;
}

APART void told_free(void *bytes)
{
    if (!bytes || is_early(bytes))
        return;
    will_be_freed(bytes);
    agent_real()->free(bytes);
}

EXPORTED void free(void *bytes)
{
    if (PASSES(free) && __builtin_expect(!is_early(bytes), 1)) {
        agent_real_functions.free(bytes);
        return;
    }
    told_free(bytes);
    STAYS;
}

APART void *told_calloc(size_t count, size_t size)
{
    const struct agent_real *real = agent_real();
    size_t whole;
    if (!real->calloc)
        return __builtin_mul_overflow(count, size, &whole) ? NULL : take_early(whole);
    void *bytes = real->calloc(count, size);
    was_allocated(bytes, count * size, APART_FRAMES);
    return bytes;
}

EXPORTED void *calloc(size_t count, size_t size)
{
    if (PASSES(calloc))
        return agent_real_functions.calloc(count, size);
    void *bytes = told_calloc(count, size);
    STAYS;
    return bytes;
}

// One that is freed and one that is made, where there was one before; what happened is known when it is over, and the
// old size only before.
EXPORTED void *realloc(void *bytes, size_t size)
{
    if (__builtin_expect(is_early(bytes), 0))
        return leave_early(bytes, size);
    const struct agent_real *real = agent_real();
    if (__builtin_expect(!real->realloc, 0))
        return take_early(size);
    if (!agent_enter(AGENT_SYNC_ALLOCATE))
        return real->realloc(bytes, size);
    size_t old_size = bytes ? size_of(bytes) : 0;
    void *moved = real->realloc(bytes, size);
    bool is_freed = bytes && (moved || size == 0);
    if (is_freed && qut_sync_hit(QUT_TOTAL_FREES, old_size))
        agent_take_memory(QUT_SAMPLE_FREE, bytes, old_size, 0);
    if (moved && qut_sync_hit(QUT_TOTAL_ALLOCATIONS, size))
        agent_take_memory(QUT_SAMPLE_ALLOCATE, moved, size, 0);
    agent_leave();
    return moved;
}

EXPORTED void *reallocarray(void *bytes, size_t count, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(bytes, whole);
}

EXPORTED void *memalign(size_t alignment, size_t size)
{
    void *bytes = agent_real()->memalign(alignment, size);
    was_allocated(bytes, size, 0);
    return bytes;
}

EXPORTED int posix_memalign(void **bytes, size_t alignment, size_t size)
{
    int error = agent_real()->posix_memalign(bytes, alignment, size);
    if (error == 0)
        was_allocated(*bytes, size, 0);
    return error;
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    void *bytes = agent_real()->aligned_alloc(alignment, size);
    was_allocated(bytes, size, 0);
    return bytes;
}

EXPORTED void *valloc(size_t size)
{
    void *bytes = agent_real()->valloc(size);
    was_allocated(bytes, size, 0);
    return bytes;
}

EXPORTED void *pvalloc(size_t size)
{
    void *bytes = agent_real()->pvalloc(size);
    was_allocated(bytes, size, 0);
    return bytes;
}
