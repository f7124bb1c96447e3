// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86_64/definition.h"

const struct qut_trampoline qut_x86_64_trampolines[1] = {
    {
        // glibc, musl and bionic alike: mov rax, __NR_rt_sigreturn (15); syscall. The handler's return popped the
        // address: sp is at the ucontext_t.
        .name = "x86_64 rt_sigreturn",
        .code = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05},
        .code_bytes = 9,
        .entry_count = 2,
        .entries = {{0, 0}, {7, 0}},
        .layout = &qut_x86_64_ucontext_registers,
    },
};
