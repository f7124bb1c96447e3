// SPDX-License-Identifier: Apache-2.0
// Return addresses that were exchanged: the code that functions return to is no frame, unless it is interrupted.
#include "tests/unit/libqut/runtime/walk/steps.h"

enum { EXIT = 0x800 }; // behind its one call

// cfa = sp + 8, ra = *(cfa - 16 - distance), sp = sp: of the call that leads to nothing but the exit.
static struct qut_rule exit_rule(void)
{
    struct qut_rule rule = world_frame(&world, 1);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_SHADOW, .reg = WORLD_SHADOW_LOG2, .offset_bytes = -16};
    rule.sp = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = world.arch->sp_reg};
    return rule;
}

// A leaf of two words, its caller of four, and the outermost one of two; the first two return to the exit.
static void two_exchanged(void)
{
    begin_on(&arch_x86_64, 0x110, 0);
    row(0x100, world_frame(&world, 2));
    row(0x200, world_frame(&world, 4));
    row(0x300, outermost());
    row(EXIT - 8, exit_rule());
    row(EXIT + 8, hole());
    world_put(&world, 1, WORLD_TEXT + EXIT);
    world_put_shadow(&world, 1, WORLD_TEXT + 0x210);
    world_put(&world, 5, WORLD_TEXT + EXIT);
    world_put_shadow(&world, 5, WORLD_TEXT + 0x310);
}

START_TEST(the_true_address_takes_its_place)
{
    two_exchanged();
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(frames[1].lookup_pc, WORLD_TEXT + 0x20f);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 2));
    ck_assert_uint_eq(frames[1].flags, 0);
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(frames[2].sp, world_stack_address(&world, 6));
}
END_TEST

START_TEST(where_the_walk_begins)
{
    two_exchanged();
    world.regs.pc = WORLD_TEXT + EXIT;
    world_set(&world, world.arch->sp_reg, world_stack_address(&world, 2));
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 2);
    ck_assert_uint_eq(frames[0].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(interrupted_it_is_a_frame)
{
    two_exchanged();
    world.regs.pc = WORLD_TEXT + EXIT; // behind the leaf's return
    world_set(&world, world.arch->sp_reg, world_stack_address(&world, 2));
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[0].pc, WORLD_TEXT + EXIT);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(frames[1].flags, 0);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 2));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(a_shadow_that_cannot_be_read_ends_the_walk_before_it)
{
    two_exchanged();
    struct qut_rule elsewhere = exit_rule();
    elsewhere.ra.reg = WORLD_SHADOW_LOG2 + 1;
    row(EXIT + 0x100 - 8, elsewhere);
    world_put(&world, 5, WORLD_TEXT + EXIT + 0x100);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(end.reason, QUT_END_BAD_MEMORY);
    ck_assert_uint_eq(end.address, world_stack_address(&world, 5) - ((uint64_t)2 << WORLD_SHADOW_LOG2));
    ck_assert_uint_eq(end.pc, WORLD_TEXT + EXIT + 0x100);
}
END_TEST

START_TEST(an_empty_shadow_is_no_outermost_frame)
{
    two_exchanged();
    world_put_shadow(&world, 5, 0);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(end.reason, QUT_END_NOT_CODE);
}
END_TEST

// Round in circles it would lead, without moving outward.
START_TEST(a_shadow_that_names_the_exit)
{
    two_exchanged();
    world_put_shadow(&world, 5, WORLD_TEXT + EXIT);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

// A signature is on the address in the shadow as it was on the one in its place.
START_TEST(signatures_come_off)
{
    two_exchanged();
    world.signature_bits = (uint64_t)0x7f << 48;
    world_put_shadow(&world, 1, (WORLD_TEXT + 0x210) | (uint64_t)0x55 << 48);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_true_address_takes_its_place,
        where_the_walk_begins,
        interrupted_it_is_a_frame,
        a_shadow_that_cannot_be_read_ends_the_walk_before_it,
        an_empty_shadow_is_no_outermost_frame,
        a_shadow_that_names_the_exit,
        signatures_come_off,
    };
    return run_steps("walk_exchanged", tests, sizeof tests / sizeof *tests);
}
