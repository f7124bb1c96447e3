// SPDX-License-Identifier: Apache-2.0
// One step of a walk by a rule, in every way it can go: what is a frame, what is an end, and which end.
#include "tests/unit/libqut/runtime/walk/steps.h"

START_TEST(interrupted_pc_is_looked_up_as_it_is_and_a_return_address_one_before)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0x080, world_frame(&world, 4));
    row(0x100, world_frame(&world, 2)); // the interrupted pc's own row begins exactly there
    row(0x1f0, world_frame(&world, 3)); // ends with a call that does not return ...
    row(0x200, hole());                 // ... so that the return address lies behind it
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x200);
    world_put(&world, 4, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[0].lookup_pc, WORLD_TEXT + 0x100);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x200);
    ck_assert_uint_eq(frames[1].lookup_pc, WORLD_TEXT + 0x1ff);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 2));
    ck_assert_uint_eq(frames[1].flags, 0);
    ck_assert_uint_eq(frames[2].sp, world_stack_address(&world, 5));
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

static size_t walk_vector_frames(uint64_t vector_bytes)
{
    begin_on(&arch_riscv64, 0x100, 0);
    world.vector_bytes = vector_bytes;
    struct qut_rule rule = world_frame_saved(&world, 2, -1);
    rule.cfa.how = QUT_CFA_VECTOR;
    rule.cfa.vector_count = 3;
    row(0x080, rule);
    row(0x200, rule); // a caller's: no context gives its registers
    row(0x300, outermost());
    world_put(&world, 7, WORLD_TEXT + 0x210);
    world_put(&world, 15, WORLD_TEXT + 0x310);
    return go(ARCH_PC_EXACT);
}

START_TEST(a_frame_for_vectors_needs_their_size)
{
    ck_assert_uint_eq(walk_vector_frames(16), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[2].sp, world_stack_address(&world, 16));
    world_free(&world);
    ck_assert_uint_eq(walk_vector_frames(0), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_REGISTER);
}
END_TEST

START_TEST(return_to_zero_is_the_outermost_frame)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0, world_frame(&world, 2));
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1); // word 1 is 0
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(each_state_of_the_module_has_its_own_end)
{
    static const struct {
        enum runtime_code_state state;
        enum qut_end_reason reason;
    } cases[] = {{RUNTIME_CODE_NO_MODULE, QUT_END_NO_MODULE},
                 {RUNTIME_CODE_PENDING, QUT_END_TABLE_PENDING},
                 {RUNTIME_CODE_NO_TABLE, QUT_END_NO_TABLE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_on(&arch_x86_64, 0x100, 0);
        row(0, world_frame(&world, 2));
        world.state = cases[i].state;
        ck_assert_uint_eq(go(ARCH_PC_RETURN), 1);
        ck_assert_uint_eq(end.reason, cases[i].reason);
        ck_assert_uint_eq(end.pc, WORLD_TEXT + 0x100);
        world_free(&world);
    }
    begin_on(&arch_x86_64, 0x100, 0);
    row(0, hole());
    row(0x200, world_frame(&world, 2));
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
    world_free(&world);
    begin_on(&arch_arm, 0x100, 0);
    row(0, refused(QUT_REFUSED_CANTUNWIND));
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_REFUSED);
    ck_assert_uint_eq(end.refusal, QUT_REFUSED_CANTUNWIND);
}
END_TEST

START_TEST(unreadable_memory_is_named)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0, world_frame(&world, WORLD_STACK_BYTES / 8 + 2));
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_BAD_MEMORY);
    ck_assert_uint_eq(end.address, WORLD_STACK + WORLD_STACK_BYTES + 8);
}
END_TEST

START_TEST(register_that_only_the_first_frame_knows)
{
    begin_on(&arch_x86_64, 0x100, 0);
    struct qut_rule by_rax = world_frame(&world, 2);
    by_rax.cfa.reg = 0;
    row(0, by_rax);
    world_set(&world, 0, world_stack_address(&world, 4)); // cfa = rax + 16
    world_put(&world, 5, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 6));
    ck_assert_uint_eq(end.reason, QUT_END_NO_REGISTER); // the caller's rule wants rax again
    ck_assert_uint_eq(end.pc, WORLD_TEXT + 0x300);
}
END_TEST

START_TEST(sp_must_move_outward)
{
    begin_on(&arch_x86_64, 0x100, 8);
    struct qut_rule by_fp = world_frame(&world, 2);
    by_fp.cfa.reg = world.arch->tracked[0];
    row(0, by_fp);
    world_set(&world, world.arch->tracked[0], world_stack_address(&world, 2)); // cfa below sp
    world_put(&world, 3, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

START_TEST(only_an_interrupted_leaf_may_share_its_sp)
{
    begin_on(&arch_aarch64, 0x100, 0);
    row(0, world_frame(&world, 0)); // cfa = sp, ra = lr
    row(0x200, world_frame_saved(&world, 2, -1));
    row(0x300, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x204);
    world_put(&world, 1, WORLD_TEXT + 0x304);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].sp, frames[0].sp);
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_RETURN, frames, FRAMES, &end), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

START_TEST(signature_is_taken_off)
{
    begin_on(&arch_aarch64, 0x100, 0);
    world.signature_bits = 0x007f800000000000;
    row(0, world_frame_saved(&world, 2, -1));
    row(0x200, outermost());
    world_put(&world, 1, (WORLD_TEXT + 0x204) | 0x0055000000000000);
    world.signature_bits |= 0x0055000000000000;
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(thumb_bit_is_told_and_not_looked_up)
{
    begin_on(&arch_arm, 0x100, 0);
    row(0, world_frame_saved(&world, 2, -1));
    row(0x200, outermost());
    row(0x210, hole());
    world_put(&world, 1, WORLD_TEXT + 0x210 + 1);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_THUMB);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST); // the row of 0x20f, not the hole
}
END_TEST

// ---- function-level rules

static struct qut_rule body(int cfa_words)
{
    struct qut_rule rule = world_frame_saved(&world, cfa_words, -1);
    rule.flags = QUT_RULE_BODY_ONLY;
    return rule;
}

START_TEST(body_only_rule_at_a_function_s_first_instruction)
{
    begin_on(&arch_arm, 0x100, 0);
    row(0x080, body(9));
    row(0x100, body(4));
    row(0x200, outermost());
    world_set(&world, 14, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2); // nothing is pushed yet: ra = lr
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(frames[1].sp, frames[0].sp);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_only_rule_at_a_first_instruction_behind_a_call_that_pushed)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0x100, body(4));
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(frames[1].sp, frames[0].sp + 8);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_only_rule_inside_a_function_is_certain_at_calls_and_a_guess_elsewhere)
{
    begin_on(&arch_arm, 0x104, 0);
    row(0x100, body(4));
    row(0x200, outermost());
    world_put(&world, 3, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert(frames[0].flags & QUT_FRAME_GUESSED);
    ck_assert_uint_eq(end.guessed_frame, 0);
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_RETURN, frames, FRAMES, &end), 2);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_only_rest_of_a_function_that_a_frame_program_begins)
{
    begin_on(&arch_arm, 0x100, 0);
    row(0x0f0, world_frame(&world, 0));
    row(0x100, body(4));
    row(0x200, outermost());
    world_put(&world, 3, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(end.guessed_frame, 0);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        interrupted_pc_is_looked_up_as_it_is_and_a_return_address_one_before,
        a_frame_for_vectors_needs_their_size,
        return_to_zero_is_the_outermost_frame,
        each_state_of_the_module_has_its_own_end,
        unreadable_memory_is_named,
        register_that_only_the_first_frame_knows,
        sp_must_move_outward,
        only_an_interrupted_leaf_may_share_its_sp,
        signature_is_taken_off,
        thumb_bit_is_told_and_not_looked_up,
        body_only_rule_at_a_function_s_first_instruction,
        body_only_rule_at_a_first_instruction_behind_a_call_that_pushed,
        body_only_rule_inside_a_function_is_certain_at_calls_and_a_guess_elsewhere,
        body_only_rest_of_a_function_that_a_frame_program_begins,
    };
    return run_steps("walk_step", tests, sizeof tests / sizeof *tests);
}
