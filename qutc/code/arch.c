// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/op.h"

// An architecture without a decoder has nothing here.
static const struct code_arch archs[QUT_ARCH_END] = {
    [QUT_ARCH_RISCV64] = {.read = code_read_riscv64, .kept = 0x0ffc031c}, // sp, gp, tp, s0-s11
    [QUT_ARCH_AARCH64] = {.read = code_read_aarch64, .kept = 0xbff80000}, // x19-x29, sp
};

const struct code_arch *code_arch(const struct arch *arch)
{
    return &archs[arch->id];
}
