// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/riscv64/definition.h"

const struct arch_call_site arch_riscv64_call_sites[ARCH_RISCV64_CALL_SITES] = {
    {4, {0xff, 0x0f}, {0xef, 0x00}}, // jal ra
    {4, {0xff, 0x7f}, {0xe7, 0x00}}, // jalr ra
    {2, {0x7f, 0xf0}, {0x02, 0x90}}, // c.jalr
};
