// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/aarch64/definition.h"

const struct arch_trampoline arch_aarch64_trampolines[1] = {
    {
        // The vdso, musl and bionic alike: mov x8, #__NR_rt_sigreturn (139); svc #0. sp is at siginfo_t (128 bytes),
        // the ucontext_t lies behind it.
        .name = "aarch64 rt_sigreturn",
        .code = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
        .code_bytes = 8,
        .entry_count = 2,
        .entries = {{0, 128}, {4, 128}},
        .layout = &arch_aarch64_ucontext_registers,
    },
};
