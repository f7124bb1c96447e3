// SPDX-License-Identifier: Apache-2.0
// What measuring a walk needs to know about aarch64.
#ifndef QUT_BENCH_WALK_MACHINE_H
#define QUT_BENCH_WALK_MACHINE_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BENCH_MACHINE "aarch64"

// A frame record: the caller's frame pointer, then the return address.
enum { BENCH_FP_CALLER = 0, BENCH_FP_RETURN = 1 };
static const uintptr_t BENCH_PC_MASK = UINTPTR_MAX;
enum { BENCH_DWARF_PC = 32 };

static inline __attribute__((always_inline)) uint64_t bench_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
    return ticks;
}

static inline __attribute__((always_inline)) void bench_raise(long pid, long tid, long number)
{
    register long x8 __asm__("x8") = SYS_tgkill;
    register long x0 __asm__("x0") = pid;
    register long x1 __asm__("x1") = tid;
    register long x2 __asm__("x2") = number;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
}

static inline uintptr_t bench_context_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.pc;
}

static inline uintptr_t bench_context_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.sp;
}

static inline uintptr_t bench_context_fp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.regs[29];
}

#endif
