// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/toy/definition.h"

const struct arch_trampoline arch_toy_trampolines[1] = {
    {
        .name = "toy rt_sigreturn",
        .code = {0x8b, 0x08, 0x00, 0x10, 0x0f, 0x00, 0x00, 0x70},
        .code_bytes = 8,
        .entry_count = 2,
        .entries = {{0, 128}, {4, 128}},
        .layout = &arch_toy_ucontext_registers,
    },
};
