// SPDX-License-Identifier: Apache-2.0
// Words of each thread's own that walks read and write, also in the first handler of a thread that never did. 0 at
// first.
#ifndef QUT_OS_THREAD_WORD_H
#define QUT_OS_THREAD_WORD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum os_thread_word {
    OS_WORD_THREAD, // what runtime_thread_self gives
    OS_WORD_LEVELS, // of walks of a thread that is not registered
    OS_WORD_TRACE,  // slot in the trace store + 1, and which trace's
    OS_WORD_TRACE_GENERATION,
    OS_WORD_ENDING, // 1: the thread is as good as dead, and gets no slot any more
    OS_WORD_TICKER, // place in the pool of libqut/sample + 1, and which pool's
    OS_WORD_TICKER_GENERATION,
    OS_WORD_TICKER_DEPTH, // of handlers and guards that look at it
    OS_WORD_SYNC_LAST,    // when a sync point was last found due
    OS_WORD_SYNC_DUE,     // the next one is: a tick has found out
    OS_WORD_SYNC_LOOKED,  // when a sync point last looked at the clock
    OS_WORD_SYNC_STRIDE,  // how many go by between two looks
    OS_WORD_SYNC_LEFT,    // of these, that are to come
    OS_WORD_COUNT,
};

#if defined(__ANDROID__) && __ANDROID_API__ < 29
// The linker of Android before 10 knows no thread-local variables. Compilers emulate them, with an allocation and a
// lock when a thread first touches one: a handler that interrupts malloc would wait for ever. Seen with clang 14. The
// value of a key needs neither: it is a load from what each thread has from its beginning.
extern pthread_key_t os_word_keys[OS_WORD_COUNT];
extern bool os_words_exist; // made when the library is loaded; false: there were no keys left

static inline uintptr_t os_thread_word(enum os_thread_word word)
{
    return os_words_exist ? (uintptr_t)pthread_getspecific(os_word_keys[word]) : 0;
}

static inline void os_set_thread_word(enum os_thread_word word, uintptr_t value)
{
    if (os_words_exist)
        pthread_setspecific(os_word_keys[word], (void *)value);
}

static inline bool os_has_thread_words(void)
{
    return os_words_exist;
}
#else
// In the static TLS block, so that reading them is signal-safe.
extern _Thread_local _Atomic uintptr_t os_words[OS_WORD_COUNT] __attribute__((tls_model("initial-exec")));

static inline uintptr_t os_thread_word(enum os_thread_word word)
{
    return atomic_load_explicit(&os_words[word], memory_order_relaxed);
}

static inline void os_set_thread_word(enum os_thread_word word, uintptr_t value)
{
    atomic_store_explicit(&os_words[word], value, memory_order_relaxed);
}

static inline bool os_has_thread_words(void)
{
    return true;
}
#endif

#pragma GCC visibility pop

#endif
