// SPDX-License-Identifier: Apache-2.0
// Programs that keep their own account of calls: each function counts how often it was entered, and how it was left.
// tests/proof/trace_calls/trace_calls_test.py compares that with what `qut trace` recorded.
#ifndef TESTS_PROOF_TRACE_CALLS_ACCOUNT_H
#define TESTS_PROOF_TRACE_CALLS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct account {
    const char *name; // as the traced function is called
    uint64_t entered;
    uint64_t returned;
    uint64_t tail;    // left by a jump to another function
    uint64_t unwound; // by longjmp, an exception, or with its thread
    uint64_t open;    // at the process's end, or at exec
};

// Relaxed: sums that are read when all threads have ended. Signal-safe.
#define ACCOUNT_ADD(field) ((void)__atomic_fetch_add(&(field), 1, __ATOMIC_RELAXED))
#define ENTER(function)    ACCOUNT_ADD(account_##function.entered)
#define LEAVE(function)    ACCOUNT_ADD(account_##function.returned)
#define TAIL(function)     ACCOUNT_ADD(account_##function.tail)
#define UNWOUND(function)  ACCOUNT_ADD(account_##function.unwound)
#define OPEN(function)     ACCOUNT_ADD(account_##function.open)

// Not inlined, not cloned, and callers know nothing of it.
#define TRACED __attribute__((noinline, noclone, noipa))

// Adds one line of JSON to the file that TRACE_ACCOUNT names (else: standard output).
void account_write(const char *which, const struct account *const *accounts, uint64_t result);
// Waits until the code at `function` is another than in its file, half a minute at most. Told by TRACE_WAIT=1; else it
// does nothing.
bool account_wait_for_patch(const void *function);
// The same, whatever was told.
bool account_wait_longer(const void *function, unsigned seconds);
// Whether the code at `function` is that of its file.
bool account_is_restored(const void *function);
// Until the word is another one: a return address that is exchanged, since the call is traced from now on. As above.
void account_wait_for_exchange(const volatile uintptr_t *slot);
// Tracing is to end while we run: until the file comes that TRACE_OVER names, a minute at most.
void account_linger(void);

#ifdef __cplusplus
}
#endif

#endif
