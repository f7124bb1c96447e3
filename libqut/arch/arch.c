// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/arch.h"

#include <stddef.h>
#include <string.h>

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

static uint64_t load_word(const uint8_t *at, unsigned word_bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, word_bytes);
    return value;
}

void qut_registers_from_block(const struct qut_register_layout *layout, const void *bytes, struct qut_frame_regs *regs)
{
    const uint8_t *block = bytes;
    regs->pc = load_word(block + layout->pc_offset, layout->word_bytes);
    regs->valid = 0;
    for (unsigned reg = 0; reg < QUT_REGISTERS_MAX; reg++) {
        if (layout->reg_offset[reg] == QUT_NOT_KEPT)
            continue;
        regs->reg[reg] = load_word(block + layout->reg_offset[reg], layout->word_bytes);
        regs->valid |= (uint64_t)1 << reg;
    }
}
