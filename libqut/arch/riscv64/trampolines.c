// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/riscv64/definition.h"

const struct arch_trampoline arch_riscv64_trampolines[1] = {
    {
        // The vdso, musl and bionic alike: li a7, __NR_rt_sigreturn (139); ecall. sp is at siginfo_t (128 bytes), the
        // ucontext_t lies behind it.
        .name = "riscv64 rt_sigreturn",
        .code = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00},
        .code_bytes = 8,
        .entry_count = 2,
        .entries = {{0, 128}, {4, 128}},
        .layout = &arch_riscv64_ucontext_registers,
    },
};
