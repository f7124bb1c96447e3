// SPDX-License-Identifier: Apache-2.0
// Frames about which nothing is known: what is tried, what is believed, and that it is marked.
#include "tests/unit/libqut/runtime/walk/steps.h"

// An instruction that calls ends at this offset of the text.
static void call_before(uint32_t offset)
{
    static const uint8_t call[] = {0xe8, 1, 2, 3, 4}, bl[] = {1, 2, 3, 0x95}, jal[] = {0xef, 0x10, 2, 3};
    switch (world.arch->id) {
    case QUT_ARCH_AARCH64: memcpy(world.code + offset - sizeof bl, bl, sizeof bl); break;
    case QUT_ARCH_RISCV64: memcpy(world.code + offset - sizeof jal, jal, sizeof jal); break;
    default: memcpy(world.code + offset - sizeof call, call, sizeof call); break;
    }
}

// ---- the innermost frame

START_TEST(leaf_by_link_register_is_marked)
{
    begin_on(&arch_aarch64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x204);
    call_before(0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(end.guessed_frame, 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(world_walk(&world, ARCH_PC_RETURN, frames, FRAMES, &end), 1); // never for a caller
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
}
END_TEST

START_TEST(leaf_that_was_built_without_tables_on_arm)
{
    begin_on(&arch_arm, 0x100, 0);
    row(0, refused(QUT_REFUSED_CANTUNWIND));
    row(0x200, outermost());
    world_set(&world, 14, WORLD_TEXT + 0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.refusal, 0);
}
END_TEST

START_TEST(link_register_that_cannot_be_right_is_not_believed)
{
    begin_on(&arch_aarch64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_set(&world, 30, WORLD_TEXT + 0x108); // no unwind information there either: left from a call of the leaf's
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

START_TEST(call_through_a_null_pointer)
{
    begin_on(&arch_x86_64, 0, 0);
    world.regs.pc = 0;
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x205);
    call_before(0x205);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[0].pc, 0);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 1));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(leaf_by_frame_pointer_is_marked)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_put(&world, 0, 0x1234);
    world_set(&world, 6, world_stack_address(&world, 4));
    world_put(&world, 4, world_stack_address(&world, 20));
    world_put(&world, 5, WORLD_TEXT + 0x205);
    call_before(0x205);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 2);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, 6));
}
END_TEST

START_TEST(pending_table_is_no_reason_to_guess)
{
    begin_on(&arch_aarch64, 0x100, 0);
    row(0, outermost());
    world.state = RUNTIME_CODE_PENDING;
    world_set(&world, 30, WORLD_TEXT + 0x204);
    call_before(0x204);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_TABLE_PENDING);
}
END_TEST

START_TEST(return_address_without_a_call_is_none)
{
    begin_on(&arch_x86_64, 0x100, 0);
    row(0, hole());
    row(0x200, outermost());
    world_put(&world, 0, WORLD_TEXT + 0x205); // a pointer to a function, say
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
}
END_TEST

// ---- frame pointers

enum { CODE = 0x100, RULES = 0x800, STEP = 16 }; // offsets of code without and with rules; between calls

static unsigned frame_words(void) // between two frame pointers of a chain
{
    return 6;
}

static void put_record(unsigned fp_index, uint64_t outer_fp, uint64_t ra)
{
    const struct arch_frame_record *record = &world.arch->frame_record;
    world_put(&world, fp_index + (unsigned)record->fp_words, outer_fp);
    world_put(&world, fp_index + (unsigned)record->ra_words, ra);
}

// A chain of `count` frames in code without rules, the first at `offset` by a return address, then one with a rule,
// which is the outermost.
static void begin_chain(const struct arch *arch, unsigned count)
{
    begin_on(arch, CODE, 0);
    world.frame_pointers = RUNTIME_FRAME_POINTERS_OF_IMAGE;
    row(0, hole());
    row(RULES, outermost());
    for (unsigned i = 0; i < count; i++) {
        uint32_t ra = i + 1 < count ? CODE + STEP * (i + 1) : RULES + 8;
        put_record(4 + i * frame_words(), world_stack_address(&world, 4 + (i + 1) * frame_words()), WORLD_TEXT + ra);
        call_before(ra);
    }
    world_set(&world, arch->tracked[0], world_stack_address(&world, 4));
}

static const struct arch *const archs[] = {&arch_x86_64, &arch_x86, &arch_aarch64, &arch_riscv64};
enum { ARCHS = sizeof archs / sizeof *archs };

START_TEST(chains_are_followed_and_each_frame_is_marked)
{
    for (unsigned a = 0; a < ARCHS; a++) {
        begin_chain(archs[a], 10);
        ck_assert_uint_eq(go(ARCH_PC_RETURN), 11);
        for (unsigned i = 1; i <= 10; i++) {
            ck_assert_uint_eq(frames[i].flags, QUT_FRAME_GUESSED);
            ck_assert_uint_eq(frames[i].pc, WORLD_TEXT + (i < 10 ? CODE + STEP * i : RULES + 8u));
            uint64_t cfa = world_stack_address(&world, 4 + (i - 1) * frame_words()) +
                           (uint64_t)(archs[a]->frame_record.cfa_words * archs[a]->word_bytes);
            ck_assert_uint_eq(frames[i].sp, archs[a]->frame_record.cfa_is_known ? cfa : 0);
        }
        ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
        ck_assert_uint_eq(end.guessed_frame, 1);
        world_free(&world);
    }
    begin_on(archs[0], 0, 0);
}
END_TEST

START_TEST(chains_are_not_followed_where_it_is_not_wanted)
{
    for (unsigned a = 0; a < ARCHS; a++) {
        begin_chain(archs[a], 3);
        world.frame_pointers = RUNTIME_FRAME_POINTERS_NOT;
        ck_assert_uint_eq(go(ARCH_PC_RETURN), 1);
        ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
        ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
        world_free(&world);
    }
    begin_on(archs[0], 0, 0);
}
END_TEST

// Where the cfa of guessed frames is not known it is fp that moves outward, however many they are.
START_TEST(a_chain_is_longer_than_switches_of_stacks_are_many)
{
    enum { LONG = FRAMES - 4 };
    static_assert(4 + (LONG + 1) * 6 < WORLD_STACK_BYTES / 8, "it fits");
    begin_chain(&arch_aarch64, LONG);
    ck_assert_uint_eq(go(ARCH_PC_RETURN), LONG + 1);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

static void ends_after(size_t count)
{
    ck_assert_uint_eq(go(ARCH_PC_RETURN), count);
    ck_assert_uint_eq(end.reason, QUT_END_NO_ROW);
}

START_TEST(what_is_not_plausible_ends_the_chain)
{
    const unsigned second = 4 + frame_words();
    uint64_t third_fp = WORLD_STACK + (second + frame_words()) * 8;
    switch (_i) {
    case 0: // a return address without a call
        begin_chain(&arch_x86_64, 5);
        memset(world.code, 0x90, RULES);
        ends_after(1);
        break;
    case 1: // inward
        begin_chain(&arch_x86_64, 5);
        put_record(second, world_stack_address(&world, 4), WORLD_TEXT + CODE + 2 * STEP);
        ends_after(3);
        break;
    case 2: // itself
        begin_chain(&arch_x86_64, 5);
        put_record(second, world_stack_address(&world, second), WORLD_TEXT + CODE + 2 * STEP);
        ends_after(3);
        break;
    case 3: // not aligned
        begin_chain(&arch_x86_64, 5);
        put_record(second, third_fp + 4, WORLD_TEXT + CODE + 2 * STEP);
        ends_after(3);
        break;
    case 4: // not readable
        begin_chain(&arch_x86_64, 5);
        put_record(second, WORLD_STACK + WORLD_STACK_BYTES + 0x100, WORLD_TEXT + CODE + 2 * STEP);
        ends_after(3);
        break;
    case 5: // too far out
        begin_chain(&arch_x86_64, 5);
        put_record(second, third_fp + (2 << 20), WORLD_TEXT + CODE + 2 * STEP);
        ends_after(3);
        break;
    default: // no code
        begin_chain(&arch_x86_64, 5);
        put_record(second, third_fp, WORLD_STACK);
        ends_after(2);
        break;
    }
}
END_TEST

START_TEST(rules_hold_again_behind_a_chain)
{
    begin_chain(&arch_x86_64, 2);
    struct qut_rule by_fp = world_frame(&world, 2); // cfa = fp + 16; ra = *(cfa - 8); fp = *(cfa - 16)
    by_fp.cfa.reg = 6;
    by_fp.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -16};
    row(RULES + 0x100, by_fp);
    row(RULES + 0x200, outermost());
    put_record(4 + frame_words(), world_stack_address(&world, 40), WORLD_TEXT + RULES + 0x110);
    call_before(RULES + 0x110);
    put_record(40, 0, WORLD_TEXT + RULES + 0x210);
    ck_assert_uint_eq(go(ARCH_PC_RETURN), 4);
    ck_assert_uint_eq(frames[2].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[3].flags, 0);
    ck_assert_uint_eq(frames[3].pc, WORLD_TEXT + RULES + 0x210);
    ck_assert_uint_eq(frames[3].sp, world_stack_address(&world, 42));
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_eq(end.guessed_frame, 1);
}
END_TEST

// Interrupted where it has no frame of its own yet, or any more: its caller is not skipped.
START_TEST(prologue_and_epilogue)
{
    static const struct {
        uint8_t code[4]; // around the pc
        unsigned before_bytes, saved_words;
    } edges[] = {
        {{0x55}, 0, 0},                   // push %rbp
        {{0xf3, 0x0f, 0x1e, 0xfa}, 0, 0}, // endbr64
        {{0x55, 0x48, 0x89, 0xe5}, 1, 1}, // mov %rsp, %rbp
        {{0x55, 0x48, 0x8b, 0xec}, 1, 1}, // the same
        {{0xc3}, 0, 0},                   // ret
        {{0xc2, 0x08}, 0, 0},             // ret 8
    };
    begin_chain(&arch_x86_64, 3);
    world.frame_pointers = RUNTIME_FRAME_POINTERS_OF_MADE_CODE;
    memset(world.code + CODE - 4, 0x90, 8);
    memcpy(world.code + CODE - edges[_i].before_bytes, edges[_i].code, sizeof edges[_i].code);
    unsigned saved = edges[_i].saved_words;
    world_put(&world, 0, world_stack_address(&world, 4)); // pushed already, where it is
    world_put(&world, saved, WORLD_TEXT + CODE + 0x80);
    call_before(CODE + 0x80);
    ck_assert_uint_eq(go(ARCH_PC_EXACT), 5);
    ck_assert_uint_eq(frames[1].pc, WORLD_TEXT + CODE + 0x80);
    ck_assert_uint_eq(frames[1].flags, QUT_FRAME_GUESSED);
    ck_assert_uint_eq(frames[1].sp, world_stack_address(&world, saved + 1));
    ck_assert_uint_eq(frames[2].pc, WORLD_TEXT + CODE + STEP);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(calls_of_each_form)
{
    static const struct {
        const struct arch *arch;
        uint8_t bytes[ARCH_CALL_BYTES];
        bool is_call;
    } forms[] = {
        {&arch_x86_64, {0, 0, 0, 0xe8, 1, 2, 3, 4}, true},       // call rel32
        {&arch_x86_64, {0, 0, 0, 0xe9, 1, 2, 3, 4}, false},      // jmp rel32
        {&arch_x86_64, {0, 0, 0, 0, 0, 0, 0xff, 0xd0}, true},    // call *%rax
        {&arch_x86_64, {0, 0, 0, 0, 0, 0x41, 0xff, 0xd3}, true}, // call *%r11
        {&arch_x86_64, {0, 0, 0, 0, 0, 0, 0xff, 0xe0}, false},   // jmp *%rax
        {&arch_x86_64, {0, 0, 0xff, 0x15, 1, 2, 3, 4}, true},    // call *1(%rip)
        {&arch_x86_64, {0, 0xff, 0x94, 0x24, 1, 2, 3, 4}, true}, // call *disp32(%rsp)
        {&arch_x86_64, {0, 0, 0, 0, 0xff, 0x54, 0x24, 8}, true}, // call *8(%rsp)
        {&arch_x86_64, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, false},
        {&arch_aarch64, {0, 0, 0, 0, 0xff, 0xff, 0xff, 0x97}, true},  // bl
        {&arch_aarch64, {0, 0, 0, 0, 0xff, 0xff, 0xff, 0x17}, false}, // b
        {&arch_aarch64, {0, 0, 0, 0, 0x00, 0x01, 0x3f, 0xd6}, true},  // blr x8
        {&arch_aarch64, {0, 0, 0, 0, 0x00, 0x01, 0x1f, 0xd6}, false}, // br x8
        {&arch_riscv64, {0, 0, 0, 0, 0xef, 0x00, 0x40, 0x00}, true},  // jal ra
        {&arch_riscv64, {0, 0, 0, 0, 0x6f, 0x00, 0x40, 0x00}, false}, // j
        {&arch_riscv64, {0, 0, 0, 0, 0xe7, 0x80, 0x07, 0x00}, true},  // jalr ra, a5
        {&arch_riscv64, {0, 0, 0, 0, 0, 0, 0x82, 0x97}, true},        // c.jalr a5
        {&arch_riscv64, {0, 0, 0, 0, 0, 0, 0x82, 0x87}, false},       // c.jr a5
    };
    begin_on(&arch_x86_64, 0, 0);
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
        ck_assert_msg(arch_is_call_site(forms[i].arch, forms[i].bytes) == forms[i].is_call, "form %u", i);
}
END_TEST

int main(void)
{
    enum { IMPLAUSIBLE = 7, EDGES = 6 };
    Suite *suite = suite_create("walk_guess");
    TCase *tcase = tcase_create("walk_guess");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    const TTest *tests[] = {
        leaf_by_link_register_is_marked,
        leaf_that_was_built_without_tables_on_arm,
        link_register_that_cannot_be_right_is_not_believed,
        call_through_a_null_pointer,
        leaf_by_frame_pointer_is_marked,
        pending_table_is_no_reason_to_guess,
        return_address_without_a_call_is_none,
        chains_are_followed_and_each_frame_is_marked,
        chains_are_not_followed_where_it_is_not_wanted,
        a_chain_is_longer_than_switches_of_stacks_are_many,
        rules_hold_again_behind_a_chain,
        calls_of_each_form,
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_add_loop_test(tcase, what_is_not_plausible_ends_the_chain, 0, IMPLAUSIBLE);
    tcase_add_loop_test(tcase, prologue_and_epilogue, 0, EDGES);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
