// SPDX-License-Identifier: Apache-2.0
// What measuring a walk needs to know about x86-64.
#ifndef QUT_BENCH_WALK_MACHINE_H
#define QUT_BENCH_WALK_MACHINE_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BENCH_MACHINE "x86_64"

// The frame pointer points at the caller's; the return address lies above it.
enum { BENCH_FP_CALLER = 0, BENCH_FP_RETURN = 1 };
static const uintptr_t BENCH_PC_MASK = UINTPTR_MAX;
enum { BENCH_DWARF_PC = 16 };

// Nothing before it runs on into what is timed, and nothing of that starts before the clock is read.
static inline __attribute__((always_inline)) uint64_t bench_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

// A signal to ourselves, from the instruction itself: a function of libc in between would have no frame pointer.
static inline __attribute__((always_inline)) void bench_raise(long pid, long tid, long number)
{
    long result = SYS_tgkill;
    __asm__ volatile("syscall" : "+a"(result) : "D"(pid), "S"(tid), "d"(number) : "rcx", "r11", "memory");
}

static inline uintptr_t bench_context_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

static inline uintptr_t bench_context_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

static inline uintptr_t bench_context_fp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
}

#endif
