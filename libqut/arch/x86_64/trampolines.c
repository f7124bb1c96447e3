// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86_64/definition.h"

const struct arch_trampoline arch_x86_64_trampolines[2] = {
    {
        // glibc, musl and bionic alike: mov rax, __NR_rt_sigreturn (15); syscall. The handler's return popped the
        // address: sp is at the ucontext_t.
        .name = "x86_64 rt_sigreturn",
        .code = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05},
        .code_bytes = 9,
        .entry_count = 2,
        .entries = {{0, 0}, {7, 0}},
        .layout = &arch_x86_64_ucontext_registers,
    },
    {
        // glibc's __start_context, where makecontext lets a coroutine's function return to: mov rsp, rbx; mov rdi,
        // [rsp]; test rdi, rdi; je. Its unwind information does not say that it is the end.
        .name = "x86_64 glibc __start_context",
        .code = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74},
        .code_bytes = 11,
        .entry_count = 1,
    },
};
