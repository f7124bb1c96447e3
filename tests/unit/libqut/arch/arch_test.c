// SPDX-License-Identifier: Apache-2.0
// What the rest of the code takes for granted about each architecture's data.
#include <elf.h>
#include <string.h>

#include "libqut/arch/arch.h"
#include "libqut/arch/system_call.h"
#include "libqut/runtime/rule_eval.h"
#include "tests/support/tap.h"

static const struct arch *arch_at(int id)
{
    return arch_by_id((enum qut_arch_id)id);
}

TEST(every_id_has_its_architecture)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        if (!CHECK(arch != NULL, "id %d", id))
            continue;
        CHECK((int)arch->id == id, "%s has id %d, asked for %d", arch->name, (int)arch->id, id);
        CHECK(arch_by_elf_machine(arch->elf_machine) == arch, "%s by machine %u", arch->name, arch->elf_machine);
    }
}

TEST(unknown_architectures_are_not_guessed)
{
    CHECK(arch_at(QUT_ARCH_NONE) == NULL, "id %d", QUT_ARCH_NONE);
    CHECK(arch_at(QUT_ARCH_END) == NULL, "id %d", QUT_ARCH_END);
    CHECK(arch_by_elf_machine(EM_NONE) == NULL, "EM_NONE");
    CHECK(arch_by_elf_machine(EM_S390) == NULL, "EM_S390");
}

TEST(registers_fit_the_walk_state)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        CHECK(arch->register_count <= ARCH_REGISTERS_MAX, "%s has %u", arch->name, arch->register_count);
        CHECK(arch->sp_reg < arch->register_count, "%s: sp is %u", arch->name, arch->sp_reg);
        CHECK(arch->ra_reg < arch->register_count, "%s: ra is %u", arch->name, arch->ra_reg);
        for (unsigned reg = 0; reg < arch->register_count; reg++)
            CHECK(arch->register_names[reg] != NULL, "%s register %u has no name", arch->name, reg);
    }
}

TEST(register_names_name_one_register)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        for (unsigned a = 0; a < arch->register_count; a++)
            for (unsigned b = a + 1; b < arch->register_count; b++)
                CHECK(strcmp(arch->register_names[a], arch->register_names[b]) != 0, "%s: %u and %u are both %s",
                      arch->name, a, b, arch->register_names[a]);
    }
}

TEST(tracked_registers_are_distinct_and_neither_sp_nor_ra)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        CHECK(arch->tracked_count <= QUT_TRACKED_MAX, "%s tracks %u", arch->name, arch->tracked_count);
        for (int slot = 0; slot < arch->tracked_count; slot++) {
            unsigned reg = arch->tracked[slot];
            CHECK(reg < arch->register_count, "%s slot %d is %u", arch->name, slot, reg);
            CHECK(reg != arch->sp_reg && reg != arch->ra_reg, "%s slot %d is %u", arch->name, slot, reg);
            // Finding its own slot says that no earlier slot holds the same register.
            CHECK(arch_slot(arch, reg) == slot, "%s register %u is in slot %d, not %d", arch->name, reg,
                  arch_slot(arch, reg), slot);
        }
        CHECK(arch_slot(arch, arch->sp_reg) == -1, "%s: sp is tracked", arch->name);
    }
}

TEST(slot_lookup_does_not_truncate_register_numbers)
{
    const struct arch *arch = &arch_x86_64;
    uint64_t rbp = arch->tracked[0];
    CHECK(arch_slot(arch, rbp + ((uint64_t)1 << 32)) == -1, "2^32 + %u passes for it", (unsigned)rbp);
    CHECK(arch_slot(arch, rbp + 256) == -1, "256 + %u passes for it", (unsigned)rbp);
}

TEST(words_and_granules_are_what_machines_have)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        CHECK(arch->word_bytes == 4 || arch->word_bytes == 8, "%s: %u", arch->name, arch->word_bytes);
        CHECK(arch->pc_shift <= 2, "%s: %u", arch->name, arch->pc_shift);
    }
}

static void check_layout(const struct arch *arch, const char *which, const struct arch_register_layout *layout)
{
    CHECK(layout->word_bytes == arch->word_bytes, "%s %s: %u", arch->name, which, layout->word_bytes);
    CHECK(layout->pc_offset + layout->word_bytes <= layout->size_bytes, "%s %s: pc", arch->name, which);
    for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++) {
        unsigned at = layout->reg_offset[reg];
        bool needed = reg == arch->sp_reg || arch_slot(arch, reg) >= 0 || (arch->ra_in_register && reg == arch->ra_reg);
        if (at == ARCH_NOT_KEPT) {
            CHECK(!needed, "%s %s: register %u is not kept", arch->name, which, reg);
            continue;
        }
        CHECK(reg < arch->register_count, "%s %s: register %u is kept", arch->name, which, reg);
        CHECK(at + layout->word_bytes <= layout->size_bytes, "%s %s: register %u at %u", arch->name, which, reg, at);
        for (unsigned other = 0; other < reg; other++)
            CHECK(layout->reg_offset[other] != at, "%s %s: %u and %u at %u", arch->name, which, other, reg, at);
    }
}

TEST(saved_registers_lie_inside_their_blocks)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        check_layout(arch_at(id), "core", arch_at(id)->core_registers);
        check_layout(arch_at(id), "ucontext", arch_at(id)->ucontext_registers);
    }
}

TEST(registers_are_read_from_where_the_layout_says)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        const struct arch_register_layout *layout = arch->ucontext_registers;
        uint8_t block[512];
        for (unsigned i = 0; i < sizeof block; i++)
            block[i] = (uint8_t)(i / layout->word_bytes); // each byte is its word's number
        struct arch_frame_regs regs;
        memset(&regs, 0xee, sizeof regs);
        arch_registers_from_block(layout, block, &regs);
        uint64_t ones = arch->word_bytes == 8 ? 0x0101010101010101 : 0x01010101;
        CHECK(regs.pc == ones * (layout->pc_offset / layout->word_bytes), "%s: pc %llx", arch->name,
              (long long)regs.pc);
        for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++) {
            bool kept = layout->reg_offset[reg] != ARCH_NOT_KEPT;
            CHECK((regs.valid >> reg & 1) == kept, "%s: register %u", arch->name, reg);
            if (kept)
                CHECK(regs.reg[reg] == ones * (layout->reg_offset[reg] / layout->word_bytes), "%s: register %u is %llx",
                      arch->name, reg, (long long)regs.reg[reg]);
        }
    }
}

TEST(trampolines_are_entered_at_their_instructions)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        CHECK(arch->trampoline_count > 0, "%s has none", arch->name);
        for (unsigned i = 0; i < arch->trampoline_count; i++) {
            const struct arch_trampoline *t = &arch->trampolines[i];
            CHECK(t->code_bytes > 0 && t->code_bytes <= sizeof t->code, "%s: %u bytes", t->name, t->code_bytes);
            CHECK(t->entry_count > 0 && t->entry_count <= sizeof t->entries / sizeof *t->entries, "%s: %u entries",
                  t->name, t->entry_count);
            CHECK(t->entries[0].code_offset == 0, "%s: handlers return to %u", t->name, t->entries[0].code_offset);
            for (unsigned e = 1; e < t->entry_count; e++)
                CHECK(t->entries[e].code_offset > t->entries[e - 1].code_offset &&
                          t->entries[e].code_offset < t->code_bytes &&
                          t->entries[e].code_offset % (1u << arch->pc_shift) == 0,
                      "%s: entry %u at %u", t->name, e, t->entries[e].code_offset);
            CHECK(!t->layout || t->layout == arch->ucontext_registers, "%s", t->name);
            for (unsigned e = 0; e < t->entry_count; e++)
                CHECK(t->entries[e].code_offset <= ARCH_TRAMPOLINE_OFFSET_MAX, "%s", t->name);
        }
    }
}

TEST(no_trampoline_hides_a_later_one)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        for (unsigned a = 0; a < arch->trampoline_count; a++)
            for (unsigned b = a + 1; b < arch->trampoline_count; b++) {
                const struct arch_trampoline *first = &arch->trampolines[a], *later = &arch->trampolines[b];
                CHECK(strcmp(first->name, later->name) != 0, "two are named %s", first->name);
                if (first->code_bytes <= later->code_bytes)
                    CHECK(memcmp(first->code, later->code, first->code_bytes) != 0, "%s is always taken for %s",
                          later->name, first->name);
            }
    }
}

TEST(what_is_said_of_files_and_calls_fits)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        const struct arch *tracee = arch->tracee_id ? arch_at((int)arch->tracee_id) : NULL;
        CHECK(arch->pc_reg < ARCH_REGISTERS_MAX || arch->pc_reg == QUT_NO_REGISTER, "%s: pc is %u", arch->name,
              arch->pc_reg);
        CHECK(arch->int64_alignment_bytes == 4 || arch->int64_alignment_bytes == 8, "%s", arch->name);
        CHECK(arch->jump_slot_relocation && arch->glob_dat_relocation, "%s: no slots of .plt", arch->name);
        CHECK(arch->system_calls[0].size_bytes > 0, "%s: no way into the kernel", arch->name);
        for (unsigned i = 0; i < sizeof arch->system_calls / sizeof *arch->system_calls; i++)
            CHECK(arch->system_calls[i].size_bytes <= ARCH_SYSTEM_CALL_BYTES, "%s", arch->name);
        CHECK(arch->core_registers->reg_offset[arch->result_reg] != ARCH_NOT_KEPT, "%s: results", arch->name);
        CHECK(!arch->call_number_offset || arch->call_number_offset < arch->core_registers->size_bytes, "%s",
              arch->name);
        for (unsigned i = 0; arch->call_number_offset && i < sizeof arch->call_argument_regs; i++)
            CHECK(arch->core_registers->reg_offset[arch->call_argument_regs[i]] != ARCH_NOT_KEPT, "%s: argument %u",
                  arch->name, i);
        CHECK(!tracee || (tracee->word_bytes == 4 && arch->word_bytes == 8), "%s", arch->name);
        CHECK(arch->telling_register && arch->telling_register[0], "%s: nothing tells it", arch->name);
        CHECK(arch->plt_header.push_bytes == 0 || arch->plt_header.push_instruction, "%s", arch->name);
    }
}

TEST(instructions_that_enter_the_kernel_are_found)
{
    static const uint8_t end[ARCH_SYSTEM_CALL_BYTES] = {0x90, 0x90, 0x0f, 0x05}, start[] = {0x0f, 0x05, 0x90, 0x90};
    static const uint8_t thumb[ARCH_SYSTEM_CALL_BYTES] = {0, 0, 0, 0xdf}, none[ARCH_SYSTEM_CALL_BYTES] = {0};
    CHECK(arch_is_system_call(&arch_x86_64, end), "syscall");
    CHECK(!arch_is_system_call(&arch_x86_64, start), "syscall, further on");
    CHECK(arch_system_call_bytes(&arch_x86_64, start) == 2, "syscall");
    CHECK(arch_is_system_call(&arch_arm, thumb), "svc #0 of Thumb");
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++)
        CHECK(!arch_is_system_call(arch_at(id), none) && !arch_system_call_bytes(arch_at(id), none), "%d", id);
}

static long behind(const uint8_t *code, size_t size)
{
    return arch_call_behind(&arch_x86_64, 0, code, size);
}

TEST(the_number_of_a_call_is_found_behind_it)
{
    const uint8_t write[] = {0xb8, 1, 0, 0, 0, 0x0f, 0x05};                          // mov $1, %eax; syscall
    const uint8_t moved[] = {0xb8, 0x10, 1, 0, 0, 0x49, 0x89, 0xca, 0x0f, 0x05};     // ...; mov %rcx, %r10; syscall
    const uint8_t read[] = {0x31, 0xc0, 0x0f, 0x05};                                 // xor %eax, %eax; syscall
    const uint8_t any[] = {0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 0x05}; // syscall(2): in a register
    const uint8_t large[] = {0xb8, 0, 0, 0, 0x80, 0x0f, 0x05};                       // no number of a call
    CHECK(behind(write, sizeof write) == 1, "%ld", behind(write, sizeof write));
    CHECK(behind(moved, sizeof moved) == 0x110, "%ld", behind(moved, sizeof moved));
    CHECK(behind(read, sizeof read) == 0, "%ld", behind(read, sizeof read));
    CHECK(behind(any, sizeof any) == -1, "%ld", behind(any, sizeof any));
    CHECK(behind(large, sizeof large) == -1, "%ld", behind(large, sizeof large));
    CHECK(behind(read, 1) == -1, "%ld", behind(read, 1));
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_at(id);
        if (!arch->call_number_reg)
            continue;
        CHECK(arch_call_behind(arch, 64, NULL, 0) == 64, "%s", arch->name);
        CHECK(arch_call_behind(arch, 1 << 20, NULL, 0) == -1, "%s", arch->name);
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
    RUN(saved_registers_lie_inside_their_blocks);
    RUN(registers_are_read_from_where_the_layout_says);
    RUN(trampolines_are_entered_at_their_instructions);
    RUN(no_trampoline_hides_a_later_one);
    RUN(what_is_said_of_files_and_calls_fits);
    RUN(instructions_that_enter_the_kernel_are_found);
    RUN(the_number_of_a_call_is_found_behind_it);
    return tap_finish();
}
