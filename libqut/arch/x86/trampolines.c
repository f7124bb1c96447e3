// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86/definition.h"

// Both frames are those that the kernel's sys_sigreturn and sys_rt_sigreturn go by. The pointer to the ucontext_t among
// the handler's arguments says the same only as long as the handler has not used its argument's slot for something
// else.
const struct arch_trampoline arch_x86_trampolines[2] = {
    {
        // glibc, musl, bionic and the vdso alike: pop %eax; mov $__NR_sigreturn (119), %eax; int $0x80. The handler's
        // return popped the address: sp is at the signal's number, then comes a struct sigcontext, which elsewhere lies
        // 20 bytes inside of the ucontext_t. The first instruction pops the number.
        .name = "x86 sigreturn",
        .code = {0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80},
        .code_bytes = 8,
        .entry_count = 3,
        .entries = {{0, 4 - 20}, {1, -20}, {6, -20}},
        .layout = &arch_x86_ucontext_registers,
    },
    {
        // mov $__NR_rt_sigreturn (173), %eax; int $0x80. sp is at the signal's number, then come the pointers to
        // siginfo_t and ucontext_t, then these themselves.
        .name = "x86 rt_sigreturn",
        .code = {0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80},
        .code_bytes = 7,
        .entry_count = 2,
        .entries = {{0, 12 + 128}, {5, 12 + 128}},
        .layout = &arch_x86_ucontext_registers,
    },
};
