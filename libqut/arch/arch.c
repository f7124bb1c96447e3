// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/arch.h"

#include <stddef.h>

static const struct qut_arch *const all_archs[] = {
    &qut_arch_x86_64, &qut_arch_aarch64, &qut_arch_arm, &qut_arch_x86, &qut_arch_riscv64,
};

const struct qut_arch *qut_arch_by_id(enum qut_arch_id id)
{
    for (size_t i = 0; i < sizeof all_archs / sizeof *all_archs; i++)
        if (all_archs[i]->id == id)
            return all_archs[i];
    return NULL;
}

const struct qut_arch *qut_arch_by_elf_machine(uint16_t elf_machine)
{
    for (size_t i = 0; i < sizeof all_archs / sizeof *all_archs; i++)
        if (all_archs[i]->elf_machine == elf_machine)
            return all_archs[i];
    return NULL;
}
