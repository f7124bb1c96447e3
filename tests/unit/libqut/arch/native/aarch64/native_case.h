// SPDX-License-Identifier: Apache-2.0
// aarch64 as its C library names it: where each register is, by DWARF number.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_AARCH64_NATIVE_CASE_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_AARCH64_NATIVE_CASE_H

#include <stddef.h>
#include <sys/user.h>
#include <ucontext.h>

#include "libqut/arch/arch.h"

static const uint16_t native_core_offsets[] = {
    offsetof(struct user_regs_struct, regs[0]),  offsetof(struct user_regs_struct, regs[1]),
    offsetof(struct user_regs_struct, regs[2]),  offsetof(struct user_regs_struct, regs[3]),
    offsetof(struct user_regs_struct, regs[4]),  offsetof(struct user_regs_struct, regs[5]),
    offsetof(struct user_regs_struct, regs[6]),  offsetof(struct user_regs_struct, regs[7]),
    offsetof(struct user_regs_struct, regs[8]),  offsetof(struct user_regs_struct, regs[9]),
    offsetof(struct user_regs_struct, regs[10]), offsetof(struct user_regs_struct, regs[11]),
    offsetof(struct user_regs_struct, regs[12]), offsetof(struct user_regs_struct, regs[13]),
    offsetof(struct user_regs_struct, regs[14]), offsetof(struct user_regs_struct, regs[15]),
    offsetof(struct user_regs_struct, regs[16]), offsetof(struct user_regs_struct, regs[17]),
    offsetof(struct user_regs_struct, regs[18]), offsetof(struct user_regs_struct, regs[19]),
    offsetof(struct user_regs_struct, regs[20]), offsetof(struct user_regs_struct, regs[21]),
    offsetof(struct user_regs_struct, regs[22]), offsetof(struct user_regs_struct, regs[23]),
    offsetof(struct user_regs_struct, regs[24]), offsetof(struct user_regs_struct, regs[25]),
    offsetof(struct user_regs_struct, regs[26]), offsetof(struct user_regs_struct, regs[27]),
    offsetof(struct user_regs_struct, regs[28]), offsetof(struct user_regs_struct, regs[29]),
    offsetof(struct user_regs_struct, regs[30]), offsetof(struct user_regs_struct, sp),
};
enum { NATIVE_CORE_PC = offsetof(struct user_regs_struct, pc), NATIVE_CORE_BYTES = sizeof(struct user_regs_struct) };

static const uint16_t native_ucontext_offsets[] = {
    offsetof(ucontext_t, uc_mcontext.regs[0]),  offsetof(ucontext_t, uc_mcontext.regs[1]),
    offsetof(ucontext_t, uc_mcontext.regs[2]),  offsetof(ucontext_t, uc_mcontext.regs[3]),
    offsetof(ucontext_t, uc_mcontext.regs[4]),  offsetof(ucontext_t, uc_mcontext.regs[5]),
    offsetof(ucontext_t, uc_mcontext.regs[6]),  offsetof(ucontext_t, uc_mcontext.regs[7]),
    offsetof(ucontext_t, uc_mcontext.regs[8]),  offsetof(ucontext_t, uc_mcontext.regs[9]),
    offsetof(ucontext_t, uc_mcontext.regs[10]), offsetof(ucontext_t, uc_mcontext.regs[11]),
    offsetof(ucontext_t, uc_mcontext.regs[12]), offsetof(ucontext_t, uc_mcontext.regs[13]),
    offsetof(ucontext_t, uc_mcontext.regs[14]), offsetof(ucontext_t, uc_mcontext.regs[15]),
    offsetof(ucontext_t, uc_mcontext.regs[16]), offsetof(ucontext_t, uc_mcontext.regs[17]),
    offsetof(ucontext_t, uc_mcontext.regs[18]), offsetof(ucontext_t, uc_mcontext.regs[19]),
    offsetof(ucontext_t, uc_mcontext.regs[20]), offsetof(ucontext_t, uc_mcontext.regs[21]),
    offsetof(ucontext_t, uc_mcontext.regs[22]), offsetof(ucontext_t, uc_mcontext.regs[23]),
    offsetof(ucontext_t, uc_mcontext.regs[24]), offsetof(ucontext_t, uc_mcontext.regs[25]),
    offsetof(ucontext_t, uc_mcontext.regs[26]), offsetof(ucontext_t, uc_mcontext.regs[27]),
    offsetof(ucontext_t, uc_mcontext.regs[28]), offsetof(ucontext_t, uc_mcontext.regs[29]),
    offsetof(ucontext_t, uc_mcontext.regs[30]), offsetof(ucontext_t, uc_mcontext.sp),
};
enum { NATIVE_UCONTEXT_PC = offsetof(ucontext_t, uc_mcontext.pc) };

enum {
    NATIVE_CALL_PUSH_BYTES = 0, // what a call pushes
    // Whether the kernel has a trampoline of its own while the C library brings another:
    NATIVE_KERNEL_RETURNS_PLAIN = 0,   // for handlers without SA_SIGINFO
    NATIVE_KERNEL_RETURNS_CONTEXT = 0, // for handlers with it
};

// pacia1716 in its hint encoding: where there are no signatures, it does nothing.
static inline uint64_t native_sign(uint64_t pc)
{
    register uint64_t x17 __asm__("x17") = pc;
    register uint64_t x16 __asm__("x16") = 0x1230;
    __asm__("hint #8" : "+r"(x17) : "r"(x16));
    return x17;
}

#endif
