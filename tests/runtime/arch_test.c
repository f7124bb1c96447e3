// SPDX-License-Identifier: Apache-2.0
// What the rest of the code takes for granted about each architecture's data.
#include <elf.h>
#include <string.h>

#include "libqut/arch/arch.h"
#include "libqut/runtime/rule_eval.h"
#include "tests/runtime/tap.h"

static const struct qut_arch *arch_at(int id)
{
    return qut_arch_by_id((enum qut_arch_id)id);
}

TEST(every_id_has_its_architecture)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct qut_arch *arch = arch_at(id);
        if (!CHECK(arch != NULL, "id %d", id))
            continue;
        CHECK((int)arch->id == id, "%s has id %d, asked for %d", arch->name, (int)arch->id, id);
        CHECK(qut_arch_by_elf_machine(arch->elf_machine) == arch, "%s by machine %u", arch->name, arch->elf_machine);
    }
}

TEST(unknown_architectures_are_not_guessed)
{
    CHECK(arch_at(QUT_ARCH_NONE) == NULL, "id %d", QUT_ARCH_NONE);
    CHECK(arch_at(QUT_ARCH_END) == NULL, "id %d", QUT_ARCH_END);
    CHECK(qut_arch_by_elf_machine(EM_NONE) == NULL, "EM_NONE");
    CHECK(qut_arch_by_elf_machine(EM_S390) == NULL, "EM_S390");
}

TEST(registers_fit_the_walk_state)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct qut_arch *arch = arch_at(id);
        CHECK(arch->register_count <= QUT_REGISTERS_MAX, "%s has %u", arch->name, arch->register_count);
        CHECK(arch->sp_reg < arch->register_count, "%s: sp is %u", arch->name, arch->sp_reg);
        CHECK(arch->ra_reg < arch->register_count, "%s: ra is %u", arch->name, arch->ra_reg);
        for (unsigned reg = 0; reg < arch->register_count; reg++)
            CHECK(arch->register_names[reg] != NULL, "%s register %u has no name", arch->name, reg);
    }
}

TEST(register_names_name_one_register)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct qut_arch *arch = arch_at(id);
        for (unsigned a = 0; a < arch->register_count; a++)
            for (unsigned b = a + 1; b < arch->register_count; b++)
                CHECK(strcmp(arch->register_names[a], arch->register_names[b]) != 0, "%s: %u and %u are both %s",
                      arch->name, a, b, arch->register_names[a]);
    }
}

TEST(tracked_registers_are_distinct_and_neither_sp_nor_ra)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct qut_arch *arch = arch_at(id);
        CHECK(arch->tracked_count <= QUT_TRACKED_MAX, "%s tracks %u", arch->name, arch->tracked_count);
        for (int slot = 0; slot < arch->tracked_count; slot++) {
            unsigned reg = arch->tracked[slot];
            CHECK(reg < arch->register_count, "%s slot %d is %u", arch->name, slot, reg);
            CHECK(reg != arch->sp_reg && reg != arch->ra_reg, "%s slot %d is %u", arch->name, slot, reg);
            // Finding its own slot says that no earlier slot holds the same register.
            CHECK(qut_arch_slot(arch, reg) == slot, "%s register %u is in slot %d, not %d", arch->name, reg,
                  qut_arch_slot(arch, reg), slot);
        }
        CHECK(qut_arch_slot(arch, arch->sp_reg) == -1, "%s: sp is tracked", arch->name);
    }
}

TEST(slot_lookup_does_not_truncate_register_numbers)
{
    const struct qut_arch *arch = &qut_arch_x86_64;
    uint64_t rbp = arch->tracked[0];
    CHECK(qut_arch_slot(arch, rbp + ((uint64_t)1 << 32)) == -1, "2^32 + %u passes for it", (unsigned)rbp);
    CHECK(qut_arch_slot(arch, rbp + 256) == -1, "256 + %u passes for it", (unsigned)rbp);
}

TEST(words_and_granules_are_what_machines_have)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct qut_arch *arch = arch_at(id);
        CHECK(arch->word_bytes == 4 || arch->word_bytes == 8, "%s: %u", arch->name, arch->word_bytes);
        CHECK(arch->pc_shift <= 2, "%s: %u", arch->name, arch->pc_shift);
    }
}

int main(void)
{
    RUN(every_id_has_its_architecture);
    RUN(unknown_architectures_are_not_guessed);
    RUN(registers_fit_the_walk_state);
    RUN(register_names_name_one_register);
    RUN(tracked_registers_are_distinct_and_neither_sp_nor_ra);
    RUN(slot_lookup_does_not_truncate_register_numbers);
    RUN(words_and_granules_are_what_machines_have);
    return tap_finish();
}
