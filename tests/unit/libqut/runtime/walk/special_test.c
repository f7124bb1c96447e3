// SPDX-License-Identifier: Apache-2.0
// Frames that no rule describes, or not well enough: signal frames, the entry point, pages of the kernel.
#include "tests/unit/libqut/runtime/walk/steps.h"

// ---- signal frames

static void put_code(uint32_t offset, const struct arch_trampoline *trampoline)
{
    memcpy(world.code + offset, trampoline->code, trampoline->code_bytes);
}

// A signal context for the x86-64 trampoline, at word `index` of the stack.
static void put_context(unsigned index, uint64_t pc, uint64_t sp, uint64_t rax)
{
    const struct arch_register_layout *layout = world.arch->ucontext_registers;
    memcpy(world.stack + index * 8 + layout->pc_offset, &pc, 8);
    memcpy(world.stack + index * 8 + layout->reg_offset[world.arch->sp_reg], &sp, 8);
    memcpy(world.stack + index * 8 + layout->reg_offset[0], &rax, 8);
}

static void handler_over_interrupted(void)
{
    begin_on(&arch_x86_64, 0x10, 0);
    world_put(&world, 1, WORLD_TEXT + 0x200); // the handler returns to the trampoline ...
    put_code(0x200, &world.arch->trampolines[0]);
    put_context(2, WORLD_TEXT + 0x300, world_stack_address(&world, 60), world_stack_address(&world, 70));
    world_put(&world, 71, WORLD_TEXT + 0x404);
}

static void check_passed_signal_frame(void)
{
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_SIGNAL);
    ck_assert_uint_eq(frames[1].lookup_pc, WORLD_TEXT + 0x200);
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(frames[2].lookup_pc, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(frames[2].flags, QUT_FRAME_INTERRUPTED);
    ck_assert_uint_eq(frames[2].sp, world_stack_address(&world, 60));
    ck_assert_uint_eq(frames[3].sp, world_stack_address(&world, 72));
    ck_assert_uint_eq(frames[3].flags, 0);
}

static struct qut_rule cfa_by_rax(void)
{
    struct qut_rule rule = world_frame(&world, 2);
    rule.cfa.reg = 0;
    return rule;
}

START_TEST(trampoline_without_unwind_information)
{
    handler_over_interrupted();
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    row(0x300, cfa_by_rax()); // what was interrupted may need any register
    row(0x400, outermost());
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 4);
    check_passed_signal_frame();
}
END_TEST

START_TEST(trampoline_right_behind_another_function)
{
    handler_over_interrupted();
    row(0, world_frame(&world, 2)); // reaches up to the trampoline: pc - 1 belongs to it
    row(0x200, hole());
    row(0x300, cfa_by_rax());
    row(0x400, outermost());
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 4);
    check_passed_signal_frame();
}
END_TEST

START_TEST(trampoline_whose_rule_is_marked)
{
    handler_over_interrupted();
    struct qut_rule signal = world_frame(&world, 2);
    signal.flags = QUT_RULE_SIGNAL;
    row(0, world_frame(&world, 2));
    row(0x1ff, signal);
    row(0x300, cfa_by_rax());
    row(0x400, outermost());
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 4);
    check_passed_signal_frame();
}
END_TEST

START_TEST(marked_rule_without_known_code)
{
    begin_on(&arch_x86_64, 0x200, 0);
    struct qut_rule signal = world_frame(&world, 2);
    signal.flags = QUT_RULE_SIGNAL;
    signal.sp = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 0};
    row(0x1ff, signal);
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x300);
    world_put(&world, 2, world_stack_address(&world, 40));
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 2);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_SIGNAL);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERRUPTED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 40));
}
END_TEST

START_TEST(interrupted_inside_the_trampoline)
{
    begin_on(&arch_x86_64, 0x207, 2);
    put_code(0x200, &world.arch->trampolines[0]);
    put_context(2, WORLD_TEXT + 0x400, world_stack_address(&world, 60), 0);
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    row(0x400, outermost());
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 60));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(code_at_which_a_coroutine_s_stack_begins)
{
    begin_on(&arch_x86_64, 0x10, 0);
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    row(0x200, world_frame(&world, 2)); // what glibc says of __start_context
    put_code(0x200, &world.arch->trampolines[1]);
    world_put(&world, 1, WORLD_TEXT + 0x200);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].flags, 0);
}
END_TEST

START_TEST(signal_frames_that_lead_to_themselves_end)
{
    begin_on(&arch_x86_64, 0x200, 2);
    put_code(0x200, &world.arch->trampolines[0]);
    put_context(2, WORLD_TEXT + 0x200, world_stack_address(&world, 2), 0);
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    world_seal(&world);
    static struct qut_frame many[1000];
    ck_assert_uint_lt(world_walk(&world, ARCH_PC_EXACT, many, 1000, &end), 100);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

// ---- no unwind information

START_TEST(entry_point_has_no_caller)
{
    begin_on(&arch_arm, 0x120, 0);
    world.entry = WORLD_TEXT + 0x100;
    row(0, world_frame(&world, 2));
    row(0x100, refused(QUT_REFUSED_CANTUNWIND));
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(code_behind_a_thumb_entry_point_is_another_function)
{
    begin_on(&arch_arm, 0x134, 0);
    world.entry = WORLD_TEXT + 0x101; // as the file has it
    row(0, refused(QUT_REFUSED_CANTUNWIND));
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_REFUSED);
    world.regs.pc = WORLD_TEXT + 0x132;
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_EXACT, frames, FRAMES, &end), 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(vsyscall_page)
{
    begin_on(&arch_x86_64, 0, 0);
    world.regs.pc = 0xffffffffff600400;
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, 0); // the page's code is known: no guess
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 1));
}
END_TEST

START_TEST(words_of_32_bits_wrap)
{
    begin_on(&arch_x86, 0x100, 0);
    struct qut_rule by_fp = world_frame(&world, 2);
    by_fp.cfa.reg = world.arch->tracked[0];
    row(0, by_fp);
    row(0x200, outermost());
    world_set(&world, world.arch->tracked[0], world_stack_address(&world, 6) | 0xdead00000000); // from a 64-bit block
    world_put(&world, 7, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 8));
}
END_TEST

START_TEST(registers_of_a_frame)
{
    begin_on(&arch_x86_64, 0x100, 0);
    struct qut_rule saves = world_frame(&world, 4);
    saves.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -16};
    row(0, saves);
    world_set(&world, 0, 111); // rax
    world_set(&world, 6, 222); // rbp
    world_set(&world, 3, 333); // rbx
    world_put(&world, 2, 444); // the caller's rbp
    world_put(&world, 3, WORLD_TEXT + 0x205);
    world_seal(&world);
    struct runtime_walk walk;
    uint64_t value = 0;
    runtime_walk_begin(world.arch, &walk, &world.regs, ARCH_PC_EXACT);
    ck_assert(runtime_walk_register(world.arch, &world_ops, &world, &walk, 0, &value) && value == 111);
    ck_assert(runtime_walk_register(world.arch, &world_ops, &world, &walk, 6, &value) && value == 222);
    ck_assert(!runtime_walk_register(world.arch, &world_ops, &world, &walk, 1, &value));
    ck_assert(!runtime_walk_register(world.arch, &world_ops, &world, &walk, 200, &value));
    ck_assert(runtime_walk_step(world.arch, &world_ops, &world, &walk));
    ck_assert(!runtime_walk_register(world.arch, &world_ops, &world, &walk, 0, &value));
    ck_assert(runtime_walk_register(world.arch, &world_ops, &world, &walk, 6, &value) && value == 444);
    ck_assert(runtime_walk_register(world.arch, &world_ops, &world, &walk, 3, &value) && value == 333);
    ck_assert(runtime_walk_register(world.arch, &world_ops, &world, &walk, 7, &value) &&
              value == world_stack_address(&world, 4));
}
END_TEST

START_TEST(every_end_and_refusal_has_a_name)
{
    begin_on(&arch_x86_64, 0, 0);
    for (uint32_t i = 0; i < QUT_END_REASON_COUNT; i++)
        ck_assert_str_ne(qut_end_reason_name(i), "unknown reason");
    ck_assert_str_eq(qut_end_reason_name(QUT_END_REASON_COUNT), "unknown reason");
    ck_assert_str_eq(qut_end_reason_name(UINT32_MAX), "unknown reason");
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        trampoline_without_unwind_information,
        trampoline_right_behind_another_function,
        trampoline_whose_rule_is_marked,
        marked_rule_without_known_code,
        interrupted_inside_the_trampoline,
        code_at_which_a_coroutine_s_stack_begins,
        signal_frames_that_lead_to_themselves_end,
        entry_point_has_no_caller,
        code_behind_a_thumb_entry_point_is_another_function,
        vsyscall_page,
        words_of_32_bits_wrap,
        registers_of_a_frame,
        every_end_and_refusal_has_a_name,
    };
    return run_steps("walk_special", tests, sizeof tests / sizeof *tests);
}
