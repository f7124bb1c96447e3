// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "qutc/code/op.h"

#define BIT(N) ((uint64_t)1 << (N))

// An architecture without a decoder has no `read`.
static const struct code_arch archs[QUT_ARCH_END] = {
    [QUT_ARCH_X86_64] = {.read = code_read_x86_64,
                         .kept = BIT(3) | BIT(6) | BIT(7) | BIT(12) | BIT(13) | BIT(14) | BIT(15),
                         .red_zone_bytes = 128,
                         .argument_reg = 5,
                         .call_number_reg = 0,
                         .clones = {56, 435},
                         .leaves = {60, 231, 15},
                         .relative_relocation = R_X86_64_RELATIVE},
    [QUT_ARCH_X86] = {.read = code_read_x86,
                      .kept = BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7),
                      .callees_pop = true,
                      .call_number_reg = 0,
                      .clones = {120, 435},
                      .leaves = {1, 252, 173},
                      .relative_relocation = R_386_RELATIVE},
    [QUT_ARCH_AARCH64] = {.read = code_read_aarch64,
                          .kept = 0xbff80000, // x19-x29, sp
                          .argument_reg = 0,
                          .call_number_reg = 8,
                          .clones = {220, 435},
                          .leaves = {93, 94, 139},
                          .relative_relocation = R_AARCH64_RELATIVE},
    [QUT_ARCH_RISCV64] = {.read = code_read_riscv64,
                          .kept = 0x0ffc031c, // sp, gp, tp, s0-s11
                          .argument_reg = 10,
                          .call_number_reg = 17,
                          .clones = {220, 435},
                          .leaves = {93, 94, 139},
                          .relative_relocation = R_RISCV_RELATIVE},
    [QUT_ARCH_ARM] = {.read = code_read_arm,
                      .kept = 0x2ff0, // r4-r11, sp
                      .argument_reg = 0,
                      .call_number_reg = 7,
                      .clones = {120, 435},
                      .leaves = {1, 248, 173},
                      .relative_relocation = R_ARM_RELATIVE},
};

const struct code_arch *code_arch(const struct arch *arch)
{
    return &archs[arch->id];
}
