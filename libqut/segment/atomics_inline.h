// SPDX-License-Identifier: Apache-2.0
// Words of a segment, which another process reads while this one writes, and which a signal handler of this thread may
// look at between any two instructions.
#ifndef QUT_SEGMENT_ATOMICS_INLINE_H
#define QUT_SEGMENT_ATOMICS_INLINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_trace.h"

static inline uint32_t segment_get32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void segment_put32(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

// Never half of it: of words whose value counts at every instruction.
static inline uint64_t segment_get64(const qut_trace_u64 *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void segment_put64(qut_trace_u64 *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

// A word of a copy that does not hold. No reader believes it before the next `version`, so 32-bit machines may write it
// in two halves; where one instruction does it anyway, it says that it may be read meanwhile.
static inline void segment_fill64(qut_trace_u64 *word, uint64_t value)
{
    if (sizeof(void *) == 8)
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
    else
        *word = value;
}

// Two words side by side, the first one the lower half: one load, one store. For copies as above: never of a word whose
// half is just written by itself, for which a processor would wait.
typedef uint64_t __attribute__((may_alias, aligned(8))) segment_pair;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are little-endian");

static inline uint64_t segment_get_pair(const uint32_t *first)
{
    return *(const segment_pair *)(const void *)first;
}

static inline void segment_fill_pair(uint32_t *first, uint64_t both)
{
    if (sizeof(void *) == 8)
        __atomic_store_n((segment_pair *)(void *)first, both, __ATOMIC_RELAXED);
    else
        *(segment_pair *)(void *)first = both;
}

// For handlers of this thread only: the compiler keeps the order.
static inline void segment_order(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// For readers elsewhere: what was stored before is seen before what is stored after. ThreadSanitizer knows no fences;
// it runs where stores are seen in their order.
#if defined(__SANITIZE_THREAD__)
#define SEGMENT_TRACE_NO_FENCE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEGMENT_TRACE_NO_FENCE 1
#endif
#endif
static inline void segment_order_stores(void)
{
#ifdef SEGMENT_TRACE_NO_FENCE
    segment_order();
#else
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

// A counter that only this thread, at this level, adds to.
static inline void segment_add_to(qut_trace_u64 *counter, uint64_t amount)
{
    segment_put64(counter, segment_get64(counter) + amount);
}

// A counter that others add to.
static inline void segment_count_shared(qut_trace_u64 *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

#endif
