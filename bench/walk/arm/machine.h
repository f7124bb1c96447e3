// SPDX-License-Identifier: Apache-2.0
// What measuring a walk needs to know about arm. Only clang has frame records here: gcc's frame pointers of Thumb code
// point at no fixed place, so that there is nothing to chase.
#ifndef QUT_BENCH_WALK_MACHINE_H
#define QUT_BENCH_WALK_MACHINE_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define BENCH_MACHINE "arm"

enum { BENCH_FP_CALLER = 0, BENCH_FP_RETURN = 1 };
static const uintptr_t BENCH_PC_MASK = ~(uintptr_t)1; // without the bit that says Thumb
enum { BENCH_DWARF_PC = 15 };

// User programs may not read a counter everywhere.
static inline uint64_t bench_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void bench_raise(long pid, long tid, long number)
{
    syscall(SYS_tgkill, pid, tid, number);
}

static inline uintptr_t bench_context_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.arm_pc;
}

static inline uintptr_t bench_context_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.arm_sp;
}

static inline uintptr_t bench_context_fp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.arm_fp;
}

#endif
