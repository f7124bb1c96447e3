// SPDX-License-Identifier: Apache-2.0
// Code of a virtual machine that says how its frames are left: what is believed of an interrupted one.
#include "tests/unit/libqut/runtime/walk/steps.h"

enum { STUB = 0x3c0, MADE = 0x400, ENTRIES = 0x600, MADE_END = 0x800, NATIVE = 0xa00, FRAME_WORDS = 4 };

static void call_before(uint32_t offset)
{
    static const uint8_t call[] = {0xe8, 1, 2, 3, 4};
    memcpy(world.code + offset - sizeof call, call, sizeof call);
}

// Interrupted in made code, with sp at word 0; native code with a rule is outermost.
static void begin_in_method(uint8_t flags)
{
    begin_on(&arch_x86_64, MADE + 0x10, 0);
    row(0, hole());
    row(NATIVE, outermost());
    world.machine_start = STUB;
    world.machine_rules = MADE;
    world.machine_entries = ENTRIES;
    world.machine_end = MADE_END;
    world.machine_rule = world_frame(&world, FRAME_WORDS);
    world.machine_rule.flags |= flags;
    call_before(MADE + 0x105);
    call_before(NATIVE + 0x105);
}

static void put_return(unsigned word, uint32_t offset)
{
    world_put(&world, word, WORLD_TEXT + offset);
}

// A caller, two more, and native code.
static void put_chain(unsigned word, uint32_t offset)
{
    put_return(word, offset);
    put_return(word + FRAME_WORDS, MADE + 0x105);
    put_return(word + 2 * FRAME_WORDS, MADE + 0x105);
    put_return(word + 3 * FRAME_WORDS, NATIVE + 0x105);
}

START_TEST(rule_is_followed_to_native_code)
{
    begin_in_method(0);
    put_return(FRAME_WORDS - 1, MADE + 0x105);
    put_return(2 * FRAME_WORDS - 1, NATIVE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + MADE + 0x105);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, FRAME_WORDS));
}
END_TEST

START_TEST(body_whose_caller_is_one_is_believed)
{
    begin_in_method(QUT_RULE_BODY_ONLY);
    put_chain(FRAME_WORDS - 1, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_that_has_pushed_more_is_marked)
{
    begin_in_method(QUT_RULE_BODY_ONLY);
    put_return(FRAME_WORDS - 1, MADE + 0x108); // no call stands before it
    put_chain(FRAME_WORDS + 1, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.guessed_frame, 0);
    ck_assert_uint_eq(frames[0].flags & QUT_FRAME_GUESSED, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, FRAME_WORDS + 2));
}
END_TEST

// Made code is called by made code: what else is found there was left behind.
START_TEST(caller_of_a_body_is_made_code)
{
    begin_in_method(QUT_RULE_BODY_ONLY);
    for (unsigned word = 0; word < 4 * FRAME_WORDS; word++)
        put_return(word, NATIVE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
}
END_TEST

// An old return address, that a word below the right one was left with.
START_TEST(caller_that_leads_nowhere_is_none)
{
    begin_in_method(QUT_RULE_BODY_ONLY);
    put_return(FRAME_WORDS - 1, MADE + 0x105);
    put_chain(FRAME_WORDS, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, FRAME_WORDS + 1));
}
END_TEST

// Stubs have no size: the nearest return address that leads on.
START_TEST(stub_is_left_by_what_lies_on_its_stack)
{
    begin_in_method(0);
    world.regs.pc = WORLD_TEXT + STUB;
    put_return(1, NATIVE + 0x105);
    put_chain(3, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].flags & QUT_FRAME_GUESSED, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 4));
}
END_TEST

// Its caller has pushed two arguments for it.
START_TEST(stub_whose_arguments_were_pushed)
{
    begin_in_method(0);
    world.regs.pc = WORLD_TEXT + STUB;
    put_return(1, NATIVE + 0x105);
    put_return(4, MADE + 0x105);
    put_chain(4 + 2 + FRAME_WORDS, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 6);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.guessed_frame, 1);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 5));
    ck_assert_uint_eq(frames[2].sp, world_stack_address(&world, 5 + 2 + FRAME_WORDS));
}
END_TEST

// One word is none of the two.
START_TEST(stub_whose_caller_has_pushed_less)
{
    begin_in_method(0);
    world.regs.pc = WORLD_TEXT + STUB;
    put_return(1, MADE + 0x105); // left there by others
    put_return(1 + 1 + FRAME_WORDS, MADE + 0x105);
    put_chain(9, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 10));
}
END_TEST

START_TEST(stub_that_keeps_a_frame_pointer)
{
    begin_in_method(0);
    world.regs.pc = WORLD_TEXT + STUB;
    world_set(&world, 6, world_stack_address(&world, 20));
    put_chain(3, MADE + 0x105); // left there by others
    world_put(&world, 20, 0x1234);
    put_chain(21, MADE + 0x105);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 22));
    ck_assert_uint_eq(end.guessed_frame, 1);
}
END_TEST

START_TEST(entries_need_no_call_before_them)
{
    begin_in_method(QUT_RULE_BODY_ONLY);
    put_chain(FRAME_WORDS - 1, ENTRIES + 0x20);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + ENTRIES + 0x20);
}
END_TEST

// The interpreter's frame, and the method's, by the address of its description.
START_TEST(interpreted_frame_says_its_method)
{
    begin_in_method(0);
    world.interpreted.method_cfa_bytes = -16;
    put_return(FRAME_WORDS - 1, NATIVE + 0x105);
    world_put(&world, FRAME_WORDS - 2, 0x7f0000001238);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_INTERRUPTED | QUT_FRAME_INTERPRETER);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_DEX);
    ck_assert_uint_eq(frames[1].pc, 0x7f0000001238);
    ck_assert_uint_eq(frames[1].lookup_pc, frames[1].pc);
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + NATIVE + 0x105);
}
END_TEST

// Where its bytecode is: in the register, if what was stored is of the same method; 0: a native one has none.
START_TEST(interpreted_frame_says_its_bytecode)
{
    enum { R13 = 13 };
    static const uint64_t method = 0x7f0000001238, near = 0x7f1234567890, far = 0x7f1234587890;
    static const struct {
        uint64_t stored, kept;
        uint16_t bytecode;
    } forms[] = {{near, near + 0x11, 0x78a1},
                 {near, near - 0x7000, 0x0890},
                 {near, far, 0x7890},
                 {near, 0, 0x7890},
                 {0, near, 0}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        begin_in_method(0);
        world.interpreted =
            (struct arch_interpreted){.method_cfa_bytes = -16, .bytecode_cfa_bytes = -24, .bytecode_reg = R13};
        put_return(FRAME_WORDS - 1, NATIVE + 0x105);
        world_put(&world, FRAME_WORDS - 2, method);
        world_put(&world, FRAME_WORDS - 3, forms[i].stored);
        world_set(&world, R13, forms[i].kept);
        ck_assert_uint_eq(go(ARCH_PC_EXACT), 3);
        ck_assert_uint_eq(frames[1].pc, method);
        ck_assert_uint_eq(frames[1].lookup_pc, method | (uint64_t)forms[i].bytecode << 48);
        if (i + 1 < sizeof forms / sizeof forms[0])
            world_free(&world);
    }
}
END_TEST

START_TEST(interpreted_frame_that_is_being_made)
{
    begin_in_method(0);
    world.interpreted.method_cfa_bytes = -8 * FRAME_WORDS; // below sp
    put_return(FRAME_WORDS - 1, NATIVE + 0x105);
    world_set(&world, world.arch->sp_reg, world_stack_address(&world, 1));
    world.machine_rule.cfa.offset_bytes -= 8;
    world_put(&world, 0, 0x7f0000001238);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + NATIVE + 0x105);
}
END_TEST

START_TEST(made_code_without_a_rule_ends_the_walk)
{
    begin_in_method(0);
    world.machine_rule.kind = QUT_RULE_HOLE;
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {rule_is_followed_to_native_code,     body_whose_caller_is_one_is_believed,
                            body_that_has_pushed_more_is_marked, caller_of_a_body_is_made_code,
                            entries_need_no_call_before_them,    made_code_without_a_rule_ends_the_walk,
                            caller_that_leads_nowhere_is_none,   stub_is_left_by_what_lies_on_its_stack,
                            stub_that_keeps_a_frame_pointer,     stub_whose_arguments_were_pushed,
                            stub_whose_caller_has_pushed_less,   interpreted_frame_says_its_method,
                            interpreted_frame_says_its_bytecode, interpreted_frame_that_is_being_made};
    return run_steps("machine", tests, sizeof tests / sizeof tests[0]);
}
