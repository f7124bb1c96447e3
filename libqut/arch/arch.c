// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/arch.h"

#include <stddef.h>
#include <string.h>

static const struct arch *const all_archs[] = {
    &arch_x86_64, &arch_aarch64, &arch_arm, &arch_x86, &arch_riscv64,
};

const struct arch *arch_by_id(enum qut_arch_id id)
{
    for (size_t i = 0; i < sizeof all_archs / sizeof *all_archs; i++)
        if (all_archs[i]->id == id)
            return all_archs[i];
    return NULL;
}

const struct arch *arch_by_elf_machine(uint16_t elf_machine)
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

void arch_registers_from_block(const struct arch_register_layout *layout, const void *bytes,
                               struct arch_frame_regs *regs)
{
    const uint8_t *block = bytes;
    regs->pc = load_word(block + layout->pc_offset, layout->word_bytes);
    regs->valid = 0;
    for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++) {
        if (layout->reg_offset[reg] == ARCH_NOT_KEPT)
            continue;
        regs->reg[reg] = load_word(block + layout->reg_offset[reg], layout->word_bytes);
        regs->valid |= (uint64_t)1 << reg;
    }
}

bool arch_is_call_site(const struct arch *arch, const uint8_t bytes[ARCH_CALL_BYTES])
{
    for (unsigned i = 0; i < arch->call_site_count; i++) {
        const struct arch_call_site *site = &arch->call_sites[i];
        const uint8_t *at = bytes + ARCH_CALL_BYTES - site->distance_bytes;
        if ((at[0] & site->mask[0]) == site->byte[0] && (at[1] & site->mask[1]) == site->byte[1])
            return true;
    }
    return false;
}

const struct arch_frame_edge *arch_frame_edge_at(const struct arch *arch, const uint8_t *pc_bytes,
                                                 unsigned before_bytes, unsigned at_bytes)
{
    for (unsigned i = 0; i < arch->frame_edge_count; i++) {
        const struct arch_frame_edge *edge = &arch->frame_edges[i];
        if (edge->before_bytes <= before_bytes && edge->at_bytes <= at_bytes &&
            memcmp(pc_bytes - edge->before_bytes, edge->before, edge->before_bytes) == 0 &&
            memcmp(pc_bytes, edge->at, edge->at_bytes) == 0)
            return edge;
    }
    return NULL;
}
