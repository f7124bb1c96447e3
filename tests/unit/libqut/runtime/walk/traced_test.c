// SPDX-License-Identifier: Apache-2.0
// Return addresses that method tracing of Android's runtime has exchanged: what they lead to is no frame where somebody
// knows the true ones; where nobody does, walks end and say so.
#include "tests/unit/libqut/runtime/walk/steps.h"

enum { EXIT = 0x800, PUSHED = EXIT + 2, RETURNED = EXIT + 0x40 };

// A leaf of two words, its caller of four, and the outermost one of two; the first two return to the exit. The exit's
// code: nothing on the stack, a place for the true address, and then behind its return.
static void two_traced(void)
{
    begin_on(&arch_x86_64, 0x110, 0);
    row(0x100, world_frame(&world, 2));
    row(0x200, world_frame(&world, 4));
    row(0x300, outermost());
    row(0x400, hole());
    row(EXIT - 1, refused(QUT_REFUSED_INSTRUMENTED));
    row(EXIT, world_frame(&world, 0));
    row(PUSHED, world_frame(&world, 1));
    row(EXIT + 4, world_frame(&world, 2));
    row(RETURNED, refused(QUT_REFUSED_INSTRUMENTED));
    row(EXIT + 0x80, hole());
    world_put(&world, 1, WORLD_TEXT + EXIT);
    world_put_shadow(&world, 1, WORLD_TEXT + 0x210);
    world_put(&world, 5, WORLD_TEXT + EXIT);
    world_put_shadow(&world, 5, WORLD_TEXT + 0x310);
}

static void in_exit(uint64_t offset, unsigned sp_index)
{
    two_traced();
    world.regs.pc = WORLD_TEXT + offset;
    world_set(&world, world.arch->sp_reg, world_stack_address(&world, sp_index));
}

static void ends_as_traced(size_t count, size_t expected)
{
    ck_assert_uint_eq(count, expected);
    ck_assert_uint_eq(end.reason, QUT_END_REFUSED);
    ck_assert_uint_eq(end.refusal, QUT_REFUSED_INSTRUMENTED);
}

static void comes_to_the_end(size_t count, size_t expected)
{
    ck_assert_uint_eq(count, expected);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.refusal, 0);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    ck_assert_uint_eq(frames[expected - 2].pc, WORLD_TEXT + 0x210);
    ck_assert_uint_eq(frames[expected - 2].flags, 0);
    ck_assert_uint_eq(frames[expected - 2].sp, world_stack_address(&world, 2));
    ck_assert_uint_eq(frames[expected - 1].pc, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(frames[expected - 1].sp, world_stack_address(&world, 6));
}

START_TEST(the_true_address_takes_its_place)
{
    two_traced();
    comes_to_the_end(go(ARCH_PC_EXACT), 3);
}
END_TEST

START_TEST(interrupted_behind_the_return)
{
    in_exit(EXIT, 2);
    comes_to_the_end(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[0].pc, WORLD_TEXT + EXIT);
}
END_TEST

// Elsewhere a return address of 0 means the outermost frame.
START_TEST(interrupted_before_the_address_is_filled_in)
{
    in_exit(PUSHED, 1);
    world_put(&world, 1, 0);
    comes_to_the_end(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[0].pc, WORLD_TEXT + PUSHED);
}
END_TEST

START_TEST(filled_in_it_is_an_address_like_any_other)
{
    in_exit(PUSHED, 1);
    world_put(&world, 1, WORLD_TEXT + 0x210);
    world_put_shadow(&world, 1, 0);
    comes_to_the_end(go(ARCH_PC_EXACT), 3);
}
END_TEST

START_TEST(where_nothing_is_known_the_walk_says_so)
{
    two_traced();
    world_put_shadow(&world, 5, 0);
    ends_as_traced(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + EXIT);
    teardown();
    in_exit(PUSHED, 1);
    world_put(&world, 1, 0);
    world_put_shadow(&world, 1, 0);
    ends_as_traced(go(ARCH_PC_EXACT), 1);
    teardown();
    in_exit(RETURNED, 1);
    ends_as_traced(go(ARCH_PC_EXACT), 1);
}
END_TEST

START_TEST(a_record_that_leads_back)
{
    two_traced();
    world_put_shadow(&world, 5, WORLD_TEXT + EXIT);
    ends_as_traced(go(ARCH_PC_EXACT), 3);
}
END_TEST

START_TEST(other_code_that_returns_to_0_is_outermost)
{
    two_traced();
    world_put(&world, 1, 0);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(there_may_be_many)
{
    enum { MANY = 100 };
    static struct qut_frame many[MANY + 3];
    two_traced();
    for (unsigned i = 0; i <= MANY; i++) {
        world_put(&world, 1 + 4 * i, WORLD_TEXT + EXIT);
        world_put_shadow(&world, 1 + 4 * i, WORLD_TEXT + (i < MANY ? 0x210 : 0x310));
    }
    world_seal(&world);
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_EXACT, many, MANY + 3, &end), MANY + 2);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        the_true_address_takes_its_place,
        interrupted_behind_the_return,
        interrupted_before_the_address_is_filled_in,
        filled_in_it_is_an_address_like_any_other,
        where_nothing_is_known_the_walk_says_so,
        a_record_that_leads_back,
        other_code_that_returns_to_0_is_outermost,
        there_may_be_many,
    };
    return run_steps("walk_traced", tests, sizeof tests / sizeof *tests);
}
