// SPDX-License-Identifier: Apache-2.0
// Frames of Android's virtual machine: an interpreter's is followed by one of the bytecode that it interprets.
#include "tests/unit/libqut/runtime/walk/steps.h"

enum { R12 = 12, ARM_R4 = 4, DEX_PC = 0x7654321 };

// An interpreter that keeps the dex pc in a register whose old value it saved below the return address.
static struct qut_rule interpreter(unsigned reg, int cfa_words)
{
    struct qut_rule rule = world_frame_saved(&world, cfa_words, -1);
    rule.dex_pc_reg = (uint8_t)reg;
    rule.tracked[arch_slot(world.arch, reg)] =
        (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -2 * world.arch->word_bytes};
    return rule;
}

// native code at 0x100 <- interpreter at 0x200 <- outermost at 0x300
static void interpreter_between_native_frames(const struct arch *arch, unsigned reg)
{
    begin_on(arch, 0x110, 0);
    row(0x100, world_frame_saved(&world, 2, -1));
    row(0x200, interpreter(reg, 4));
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x210);
    world_put(&world, 4, DEX_PC + 1); // what the interpreter saved: its caller's value
    world_put(&world, 5, WORLD_TEXT + 0x310);
    world_set(&world, reg, DEX_PC);
}

START_TEST(bytecode_follows_its_interpreter)
{
    static const struct {
        const struct arch *arch;
        unsigned reg;
    } cases[] = {{&arch_x86_64, 12}, {&arch_x86_64, 3}, {&arch_aarch64, 20}, {&arch_aarch64, 22},
                 {&arch_arm, 4},     {&arch_arm, 11},   {&arch_x86, 6},      {&arch_riscv64, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        interpreter_between_native_frames(cases[i].arch, cases[i].reg);
        ck_assert_uint_eq(go(ARCH_PC_EXACT), 4);
        ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
        ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED);
        ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x210);
        ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERPRETER);
        ck_assert_uint_eq(frames[2].pc, DEX_PC); // as it is: odd, on arm too
        ck_assert_uint_eq(frames[2].lookup_pc, DEX_PC);
        ck_assert_uint_eq(frames[2].flags, QUT_FRAME_DEX);
        ck_assert_uint_eq(frames[2].sp, frames[3].sp);
        ck_assert_uint_eq(frames[3].pc, WORLD_TEXT + 0x310);
        ck_assert_uint_eq(frames[3].lookup_pc, WORLD_TEXT + 0x30f);
        ck_assert_uint_eq(frames[3].flags, 0);
        ck_assert_uint_eq(end.pc, WORLD_TEXT + 0x310);
        world_free(&world);
    }
    begin_on(&arch_x86_64, 0, 0); // for the fixture
    row(0, hole());
    world_seal(&world);
}
END_TEST

START_TEST(interrupted_interpreter)
{
    begin_on(&arch_x86_64, 0x200, 0);
    row(0x200, interpreter(R12, 4));
    row(0x300, outermost());
    world_put(&world, 3, WORLD_TEXT + 0x310);
    world_set(&world, R12, DEX_PC);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED | QUT_FRAME_INTERPRETER);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_DEX);
    ck_assert_uint_eq(frames[2].flags, 0);
    ck_assert_uint_eq(frames[2].lookup_pc, WORLD_TEXT + 0x30f);
}
END_TEST

// Each interpreter has a dex pc of its own: the outer one's is what the inner one saved.
START_TEST(interpreter_called_by_an_interpreter)
{
    begin_on(&arch_x86_64, 0x200, 0);
    row(0x200, interpreter(R12, 4));
    row(0x300, outermost());
    world_set(&world, R12, DEX_PC);
    world_put(&world, 2, DEX_PC + 0x100);
    world_put(&world, 3, WORLD_TEXT + 0x220);
    world_put(&world, 7, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(frames[1].pc, DEX_PC);
    ck_assert_uint_eq(frames[2].flags, QUT_FRAME_INTERPRETER);
    ck_assert_uint_eq(frames[3].pc, DEX_PC + 0x100);
    ck_assert_uint_eq(frames[3].flags, QUT_FRAME_DEX);
    ck_assert_uint_eq(frames[4].sp, world_stack_address(&world, 8));
}
END_TEST

static void check_no_bytecode(void)
{
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERPRETER);
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(frames[2].flags, 0);
}

START_TEST(unknown_register_gives_no_bytecode)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world.regs.valid &= ~((uint64_t)1 << R12);
    check_no_bytecode();
}
END_TEST

START_TEST(zero_is_no_bytecode)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world_set(&world, R12, 0);
    check_no_bytecode();
}
END_TEST

// Behind the epilogue's restore, and before the prologue's save, the register is the caller's, whatever is marked.
START_TEST(register_that_is_the_caller_s_gives_no_bytecode)
{
    begin_on(&arch_x86_64, 0x110, 0);
    row(0x100, world_frame_saved(&world, 2, -1));
    struct qut_rule epilogue = world_frame_saved(&world, 4, -1);
    epilogue.dex_pc_reg = R12;
    row(0x200, epilogue);
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x210);
    world_put(&world, 5, WORLD_TEXT + 0x310);
    world_set(&world, R12, DEX_PC);
    check_no_bytecode();
}
END_TEST

// Nothing is given out for a frame that cannot be left but the frame.
START_TEST(interpreter_that_cannot_be_left)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world_put(&world, 5, 0);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERPRETER);
}
END_TEST

START_TEST(no_room_behind_the_bytecode)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world_seal(&world);
    struct runtime_walk walk;
    runtime_walk_begin(world.arch, &walk, &world.regs, ARCH_PC_EXACT);
    for (unsigned i = 0; i < 2; i++)
        ck_assert(runtime_walk_step(world.arch, &world_ops, &world, &walk));
    ck_assert_uint_eq(walk.index, 2);
    struct runtime_walk copy = walk; // a walk is plain data, here too
    struct qut_frame frame;
    for (unsigned i = 0; i < 2; i++) { // asking twice changes nothing
        runtime_walk_frame(world.arch, &world_ops, &world, &copy, &frame);
        ck_assert_uint_eq(frame.flags, QUT_FRAME_DEX);
        ck_assert_uint_eq(frame.pc, DEX_PC);
    }
    ck_assert(runtime_walk_step(world.arch, &world_ops, &world, &copy));
    ck_assert_uint_eq(copy.index, 3);
    runtime_walk_frame(world.arch, &world_ops, &world, &copy, &frame);
    ck_assert_uint_eq(frame.flags, 0);
    ck_assert(!runtime_walk_step(world.arch, &world_ops, &world, &copy));
    ck_assert_uint_eq(copy.end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(code_says_what_its_frames_are)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world.frame_flags = QUT_FRAME_JIT | QUT_FRAME_MANAGED;
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 4);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED | QUT_FRAME_JIT | QUT_FRAME_MANAGED);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERPRETER | QUT_FRAME_JIT | QUT_FRAME_MANAGED);
    ck_assert_uint_eq(frames[2].flags, QUT_FRAME_DEX);
    ck_assert_uint_eq(frames[3].flags, QUT_FRAME_JIT | QUT_FRAME_MANAGED);
}
END_TEST

START_TEST(table_of_an_oat_file_says_that_its_code_is_managed)
{
    interpreter_between_native_frames(&arch_x86_64, R12);
    world_seal(&world);
    struct qut_table_header header = *world.made.table.header;
    header.flags |= QUT_TABLE_MANAGED;
    world.made.table.header = &header;
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_EXACT, frames, FRAMES, &end), 4);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED | QUT_FRAME_MANAGED);
    ck_assert_uint_eq(frames[2].flags, QUT_FRAME_DEX);
    ck_assert_uint_eq(frames[3].flags, QUT_FRAME_MANAGED);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        bytecode_follows_its_interpreter,
        interrupted_interpreter,
        interpreter_called_by_an_interpreter,
        unknown_register_gives_no_bytecode,
        zero_is_no_bytecode,
        register_that_is_the_caller_s_gives_no_bytecode,
        interpreter_that_cannot_be_left,
        no_room_behind_the_bytecode,
        code_says_what_its_frames_are,
        table_of_an_oat_file_says_that_its_code_is_managed,
    };
    return run_steps("walk_managed", tests, sizeof tests / sizeof *tests);
}
