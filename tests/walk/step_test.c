// SPDX-License-Identifier: Apache-2.0
// One step of a walk, in every way it can go: what is a frame, what is an end, and which end.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/walk/world.h"

enum { FRAMES = 64 };

static struct world world;
static struct qut_frame frames[FRAMES];
static struct qut_end end;

static void begin_on(const struct qut_arch *arch, uint64_t offset, unsigned sp_index)
{
    world_init(&world, arch);
    world.regs.pc = WORLD_TEXT + offset;
    world_set(&world, arch->sp_reg, world_stack_address(&world, sp_index));
}

static size_t go(enum qut_pc_kind kind)
{
    world_seal(&world);
    return world_walk(&world, kind, frames, FRAMES, &end);
}

static void row(uint32_t offset, struct qut_rule rule)
{
    world_rule(&world, offset, &rule);
}

static struct qut_rule hole(void)
{
    return (struct qut_rule){.kind = QUT_RULE_HOLE, .dex_pc_reg = QUT_NO_REGISTER};
}

static struct qut_rule outermost(void)
{
    struct qut_rule rule = world_frame(&world, 1);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    return rule;
}

static struct qut_rule refused(enum qut_refusal reason)
{
    return (struct qut_rule){.kind = QUT_RULE_REFUSED, .reason = (uint8_t)reason, .dex_pc_reg = QUT_NO_REGISTER};
}

static void teardown(void)
{
    world_free(&world);
}

START_TEST(interrupted_pc_is_looked_up_as_it_is_and_a_return_address_one_before)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    row(0x080, world_frame(&world, 4));
    row(0x100, world_frame(&world, 2)); // the interrupted pc's own row begins exactly there
    row(0x1f0, world_frame(&world, 3)); // ends with a call that does not return ...
    row(0x200, hole());                 // ... so that the return address lies behind it
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x200);
    world_put(&world, 4, WORLD_TEXT + 0x310);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 3);
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

START_TEST(return_to_zero_is_the_outermost_frame)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    row(0, world_frame(&world, 2));
    ck_assert_uint_eq(go(QUT_PC_EXACT), 1); // word 1 is 0
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(each_state_of_the_module_has_its_own_end)
{
    static const struct {
        enum qut_code_state state;
        enum qut_end_reason reason;
    } cases[] = {{QUT_CODE_NO_MODULE, QUT_END_NO_MODULE},
                 {QUT_CODE_PENDING, QUT_END_TABLE_PENDING},
                 {QUT_CODE_NO_TABLE, QUT_END_NO_TABLE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_on(&qut_arch_x86_64, 0x100, 0);
        row(0, world_frame(&world, 2));
        world.state = cases[i].state;
        ck_assert_uint_eq(go(QUT_PC_RETURN), 1);
        ck_assert_uint_eq(end.reason, cases[i].reason);
        ck_assert_uint_eq(end.pc, WORLD_TEXT + 0x100);
        world_free(&world);
    }
    begin_on(&qut_arch_x86_64, 0x100, 0);
    row(0, hole());
    row(0x200, world_frame(&world, 2));
    ck_assert_uint_eq(go(QUT_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
    world_free(&world);
    begin_on(&qut_arch_arm, 0x100, 0);
    row(0, refused(QUT_REFUSED_CANTUNWIND));
    ck_assert_uint_eq(go(QUT_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_REFUSED);
    ck_assert_uint_eq(end.refusal, QUT_REFUSED_CANTUNWIND);
}
END_TEST

START_TEST(unreadable_memory_is_named)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    row(0, world_frame(&world, WORLD_STACK_BYTES / 8 + 2));
    ck_assert_uint_eq(go(QUT_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_BAD_MEMORY);
    ck_assert_uint_eq(end.address, WORLD_STACK + WORLD_STACK_BYTES + 8);
}
END_TEST

START_TEST(register_that_only_the_first_frame_knows)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    struct qut_rule by_rax = world_frame(&world, 2);
    by_rax.cfa.reg = 0;
    row(0, by_rax);
    world_set(&world, 0, world_stack_address(&world, 4)); // cfa = rax + 16
    world_put(&world, 5, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 6));
    ck_assert_uint_eq(end.reason, QUT_END_NO_REGISTER); // the caller's rule wants rax again
    ck_assert_uint_eq(end.pc, WORLD_TEXT + 0x300);
}
END_TEST

START_TEST(sp_must_move_outward)
{
    begin_on(&qut_arch_x86_64, 0x100, 8);
    struct qut_rule by_fp = world_frame(&world, 2);
    by_fp.cfa.reg = world.arch->tracked[0];
    row(0, by_fp);
    world_set(&world, world.arch->tracked[0], world_stack_address(&world, 2)); // cfa below sp
    world_put(&world, 3, WORLD_TEXT + 0x300);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

START_TEST(only_an_interrupted_leaf_may_share_its_sp)
{
    begin_on(&qut_arch_aarch64, 0x100, 0);
    row(0, world_frame(&world, 0)); // cfa = sp, ra = lr
    row(0x200, world_frame_saved(&world, 2, -1));
    row(0x300, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x204);
    world_put(&world, 1, WORLD_TEXT + 0x304);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 3);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(frames[1].sp, frames[0].sp);
    ck_assert_uint_eq(world_walk(&world, QUT_PC_RETURN, frames, FRAMES, &end), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

START_TEST(signature_is_taken_off)
{
    begin_on(&qut_arch_aarch64, 0x100, 0);
    world.signature_bits = 0x007f800000000000;
    row(0, world_frame_saved(&world, 2, -1));
    row(0x200, outermost());
    world_put(&world, 1, (WORLD_TEXT + 0x204) | 0x0055000000000000);
    world.signature_bits |= 0x0055000000000000;
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(thumb_bit_is_told_and_not_looked_up)
{
    begin_on(&qut_arch_arm, 0x100, 0);
    row(0, world_frame_saved(&world, 2, -1));
    row(0x200, outermost());
    row(0x210, hole());
    world_put(&world, 1, WORLD_TEXT + 0x210 + 1);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
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
    begin_on(&qut_arch_arm, 0x100, 0);
    row(0x080, body(9));
    row(0x100, body(4));
    row(0x200, outermost());
    world_set(&world, 14, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2); // nothing is pushed yet: ra = lr
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(frames[1].sp, frames[0].sp);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_only_rule_inside_a_function_is_certain_at_calls_and_a_guess_elsewhere)
{
    begin_on(&qut_arch_arm, 0x104, 0);
    row(0x100, body(4));
    row(0x200, outermost());
    world_put(&world, 3, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert(frames[0].flags & QUT_FRAME_GUESSED);
    ck_assert_uint_eq(end.guessed_frame, 0);
    ck_assert_uint_eq(world_walk(&world, QUT_PC_RETURN, frames, FRAMES, &end), 2);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(body_only_rest_of_a_function_that_a_frame_program_begins)
{
    begin_on(&qut_arch_arm, 0x100, 0);
    row(0x0f0, world_frame(&world, 0));
    row(0x100, body(4));
    row(0x200, outermost());
    world_put(&world, 3, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(end.guessed_frame, 0);
}
END_TEST

// ---- signal frames

static void put_code(uint32_t offset, const struct qut_trampoline *trampoline)
{
    memcpy(world.code + offset, trampoline->code, trampoline->code_bytes);
}

// A signal context for the x86-64 trampoline, at word `index` of the stack.
static void put_context(unsigned index, uint64_t pc, uint64_t sp, uint64_t rax)
{
    const struct qut_register_layout *layout = world.arch->ucontext_registers;
    memcpy(world.stack + index * 8 + layout->pc_offset, &pc, 8);
    memcpy(world.stack + index * 8 + layout->reg_offset[world.arch->sp_reg], &sp, 8);
    memcpy(world.stack + index * 8 + layout->reg_offset[0], &rax, 8);
}

static void handler_over_interrupted(void)
{
    begin_on(&qut_arch_x86_64, 0x10, 0);
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
    ck_assert_uint_eq(go(QUT_PC_EXACT), 4);
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
    ck_assert_uint_eq(go(QUT_PC_EXACT), 4);
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
    ck_assert_uint_eq(go(QUT_PC_EXACT), 4);
    check_passed_signal_frame();
}
END_TEST

START_TEST(marked_rule_without_known_code)
{
    begin_on(&qut_arch_x86_64, 0x200, 0);
    struct qut_rule signal = world_frame(&world, 2);
    signal.flags = QUT_RULE_SIGNAL;
    signal.sp = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 0};
    row(0x1ff, signal);
    row(0x300, outermost());
    world_put(&world, 1, WORLD_TEXT + 0x300);
    world_put(&world, 2, world_stack_address(&world, 40));
    ck_assert_uint_eq(go(QUT_PC_RETURN), 2);
    ck_assert_uint_eq(frames[0].flags, QUT_FRAME_SIGNAL);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_INTERRUPTED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 40));
}
END_TEST

START_TEST(interrupted_inside_the_trampoline)
{
    begin_on(&qut_arch_x86_64, 0x207, 2);
    put_code(0x200, &world.arch->trampolines[0]);
    put_context(2, WORLD_TEXT + 0x400, world_stack_address(&world, 60), 0);
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    row(0x400, outermost());
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 60));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(signal_frames_that_lead_to_themselves_end)
{
    begin_on(&qut_arch_x86_64, 0x200, 2);
    put_code(0x200, &world.arch->trampolines[0]);
    put_context(2, WORLD_TEXT + 0x200, world_stack_address(&world, 2), 0);
    row(0, world_frame(&world, 2));
    row(0x100, hole());
    world_seal(&world);
    static struct qut_frame many[1000];
    ck_assert_uint_lt(world_walk(&world, QUT_PC_EXACT, many, 1000, &end), 100);
    ck_assert_uint_eq(end.reason, QUT_END_NO_PROGRESS);
}
END_TEST

// ---- no unwind information

START_TEST(entry_point_has_no_caller)
{
    begin_on(&qut_arch_arm, 0x120, 0);
    world.entry = WORLD_TEXT + 0x100;
    row(0, world_frame(&world, 2));
    row(0x100, refused(QUT_REFUSED_CANTUNWIND));
    ck_assert_uint_eq(go(QUT_PC_RETURN), 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(leaf_by_link_register_is_marked)
{
    begin_on(&qut_arch_aarch64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(end.guessed_frame, 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(world_walk(&world, QUT_PC_RETURN, frames, FRAMES, &end), 1); // never for a caller
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
}
END_TEST

START_TEST(link_register_that_cannot_be_right_is_not_believed)
{
    begin_on(&qut_arch_aarch64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x108); // no unwind information there either: left from a call of the leaf's
    ck_assert_uint_eq(go(QUT_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(call_through_a_null_pointer)
{
    begin_on(&qut_arch_x86_64, 0, 0);
    world.regs.pc = 0;
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[0].pc, 0);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 1));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(leaf_by_frame_pointer_is_marked)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_put(&world, 0, 0x1234);
    world_set(&world, 6, world_stack_address(&world, 4));
    world_put(&world, 4, world_stack_address(&world, 20));
    world_put(&world, 5, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 6));
}
END_TEST

START_TEST(pending_table_is_no_reason_to_guess)
{
    begin_on(&qut_arch_aarch64, 0x100, 0);
    row(0, outermost());
    world.state = QUT_CODE_PENDING;
    world_set(&world, 30, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_TABLE_PENDING);
}
END_TEST

START_TEST(vsyscall_page)
{
    begin_on(&qut_arch_x86_64, 0, 0);
    world.regs.pc = 0xffffffffff600400;
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, 0); // the page's code is known: no guess
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 1));
}
END_TEST

START_TEST(words_of_32_bits_wrap)
{
    begin_on(&qut_arch_x86, 0x100, 0);
    struct qut_rule by_fp = world_frame(&world, 2);
    by_fp.cfa.reg = world.arch->tracked[0];
    row(0, by_fp);
    row(0x200, outermost());
    world_set(&world, world.arch->tracked[0], world_stack_address(&world, 6) | 0xdead00000000); // from a 64-bit block
    world_put(&world, 7, WORLD_TEXT + 0x205);
    ck_assert_uint_eq(go(QUT_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 8));
}
END_TEST

START_TEST(registers_of_a_frame)
{
    begin_on(&qut_arch_x86_64, 0x100, 0);
    struct qut_rule saves = world_frame(&world, 4);
    saves.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -16};
    row(0, saves);
    world_set(&world, 0, 111); // rax
    world_set(&world, 6, 222); // rbp
    world_set(&world, 3, 333); // rbx
    world_put(&world, 2, 444); // the caller's rbp
    world_put(&world, 3, WORLD_TEXT + 0x205);
    world_seal(&world);
    struct qut_walk walk;
    uint64_t value = 0;
    qut_walk_begin(world.arch, &walk, &world.regs, QUT_PC_EXACT);
    ck_assert(qut_walk_register(world.arch, &world_ops, &world, &walk, 0, &value) && value == 111);
    ck_assert(qut_walk_register(world.arch, &world_ops, &world, &walk, 6, &value) && value == 222);
    ck_assert(!qut_walk_register(world.arch, &world_ops, &world, &walk, 1, &value));
    ck_assert(!qut_walk_register(world.arch, &world_ops, &world, &walk, 200, &value));
    ck_assert(qut_walk_step(world.arch, &world_ops, &world, &walk));
    ck_assert(!qut_walk_register(world.arch, &world_ops, &world, &walk, 0, &value));
    ck_assert(qut_walk_register(world.arch, &world_ops, &world, &walk, 6, &value) && value == 444);
    ck_assert(qut_walk_register(world.arch, &world_ops, &world, &walk, 3, &value) && value == 333);
    ck_assert(qut_walk_register(world.arch, &world_ops, &world, &walk, 7, &value) &&
              value == world_stack_address(&world, 4));
}
END_TEST

START_TEST(every_end_and_refusal_has_a_name)
{
    begin_on(&qut_arch_x86_64, 0, 0);
    for (uint32_t i = 0; i < QUT_END_REASON_COUNT; i++)
        ck_assert_str_ne(qut_end_reason_name(i), "unknown reason");
    ck_assert_str_eq(qut_end_reason_name(QUT_END_REASON_COUNT), "unknown reason");
    ck_assert_str_eq(qut_end_reason_name(UINT32_MAX), "unknown reason");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("walk_step");
    TCase *tcase = tcase_create("step");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, interrupted_pc_is_looked_up_as_it_is_and_a_return_address_one_before);
    tcase_add_test(tcase, return_to_zero_is_the_outermost_frame);
    tcase_add_test(tcase, each_state_of_the_module_has_its_own_end);
    tcase_add_test(tcase, unreadable_memory_is_named);
    tcase_add_test(tcase, register_that_only_the_first_frame_knows);
    tcase_add_test(tcase, sp_must_move_outward);
    tcase_add_test(tcase, only_an_interrupted_leaf_may_share_its_sp);
    tcase_add_test(tcase, signature_is_taken_off);
    tcase_add_test(tcase, thumb_bit_is_told_and_not_looked_up);
    tcase_add_test(tcase, body_only_rule_at_a_function_s_first_instruction);
    tcase_add_test(tcase, body_only_rule_inside_a_function_is_certain_at_calls_and_a_guess_elsewhere);
    tcase_add_test(tcase, body_only_rest_of_a_function_that_a_frame_program_begins);
    tcase_add_test(tcase, trampoline_without_unwind_information);
    tcase_add_test(tcase, trampoline_right_behind_another_function);
    tcase_add_test(tcase, trampoline_whose_rule_is_marked);
    tcase_add_test(tcase, marked_rule_without_known_code);
    tcase_add_test(tcase, interrupted_inside_the_trampoline);
    tcase_add_test(tcase, signal_frames_that_lead_to_themselves_end);
    tcase_add_test(tcase, entry_point_has_no_caller);
    tcase_add_test(tcase, leaf_by_link_register_is_marked);
    tcase_add_test(tcase, link_register_that_cannot_be_right_is_not_believed);
    tcase_add_test(tcase, call_through_a_null_pointer);
    tcase_add_test(tcase, leaf_by_frame_pointer_is_marked);
    tcase_add_test(tcase, pending_table_is_no_reason_to_guess);
    tcase_add_test(tcase, vsyscall_page);
    tcase_add_test(tcase, words_of_32_bits_wrap);
    tcase_add_test(tcase, registers_of_a_frame);
    tcase_add_test(tcase, every_end_and_refusal_has_a_name);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
