// SPDX-License-Identifier: Apache-2.0
// Rows of a libart that its code contradicts, in code as it was seen there: epilogues that count with a frame pointer
// they have given back, ways out behind another epilogue, a jump that takes its registers from a record.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cfi/art.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

enum { TEXT = 0x10000, TEXT_BYTES = 0x400, RBP = 6, RSP = 7, WORD = 8 };

static const char libart[] = "/apex/com.android.art/lib64/libart.so";
static struct cfi_rule_set rules;
static struct cfi_row_list rows;
static uint8_t text[TEXT_BYTES];

static void begin(void)
{
    memset(text, 0xcc, sizeof text);
    ck_assert_int_eq(cfi_rule_set_init(&rules, NULL), 0);
    rows = (struct cfi_row_list){0};
    ck_assert_int_eq(cfi_row_list_reserve(&rows, 64, NULL), 0);
}

static void end(void)
{
    cfi_rule_set_free(&rules);
    cfi_row_list_free(&rows);
}

static struct qut_rule frame(uint8_t reg, int32_t cfa_bytes)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    rule.cfa.reg = reg;
    rule.cfa.offset_bytes = cfa_bytes;
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -WORD};
    return rule;
}

static void row(uint32_t offset, uint8_t reg, int32_t cfa_bytes)
{
    struct qut_rule rule = frame(reg, cfa_bytes);
    cfi_row_list_put(&rows, offset, cfi_rule_set_intern(&rules, &rule));
}

static void hole(uint32_t offset)
{
    cfi_row_list_put(&rows, offset, CFI_RULE_HOLE_ID);
}

static struct input_image *open_image(const char *name)
{
    struct build_elf spec = {
        .machine = EM_X86_64,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, text, sizeof text, 16}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}},
    };
    struct build_buffer file = build_elf(&spec);
    struct input_image *image = NULL;
    struct base_error error = {0};
    int result = input_image_open_memory((struct base_bytes){file.data, file.size}, name, NULL, &image, &error);
    ck_assert_msg(result == 0, "%s", error.detail);
    free(file.data);
    return image;
}

static void change(const char *name)
{
    struct input_image *image = open_image(name);
    ck_assert_int_eq(cfi_art_rows(image, TEXT, TEXT + TEXT_BYTES, &rules, &rows, NULL), 0);
    for (size_t i = 1; i < rows.count; i++)
        ck_assert_uint_lt(rows.rows[i - 1].pc_rel, rows.rows[i].pc_rel);
    input_image_close(image);
}

static const struct qut_rule *rule_at(uint32_t offset)
{
    uint32_t rule_id = CFI_RULE_HOLE_ID;
    for (size_t i = 0; i < rows.count && rows.rows[i].pc_rel <= offset; i++)
        rule_id = rows.rows[i].rule_id;
    return &rules.rules[rule_id];
}

static void expect(uint32_t offset, uint8_t reg, int32_t cfa_bytes)
{
    const struct qut_rule *rule = rule_at(offset);
    ck_assert_msg(rule->kind == QUT_RULE_FRAME && rule->cfa.reg == reg && rule->cfa.offset_bytes == cfa_bytes,
                  "%#x: kind %u, register %u + %d", offset, rule->kind, rule->cfa.reg, rule->cfa.offset_bytes);
}

static void expect_refused(uint32_t offset)
{
    ck_assert_uint_eq(rule_at(offset)->kind, QUT_RULE_REFUSED);
    ck_assert_uint_eq(rule_at(offset)->reason, QUT_REFUSED_STACK_SWITCH);
}

// mov %rbp,%rsp; pop %r12; pop %rbx; pop %rbp; cmpb $0x44,(%r9); je +4; mov %rax,(%r8); ret; movsd %xmm0,(%r8); ret
static const uint8_t epilogue[] = {0x48, 0x89, 0xec, 0x41, 0x5c, 0x5b, 0x5d, 0x41, 0x80, 0x39, 0x44, 0x74,
                                   0x04, 0x49, 0x89, 0x00, 0xc3, 0xf2, 0x41, 0x0f, 0x11, 0x00, 0xc3};

static void put_epilogue(void)
{
    memcpy(text + 0x100, epilogue, sizeof epilogue);
    row(0x100, RBP, 32);
    row(0x105, RBP, 24);
    row(0x106, RBP, 16);
    row(0x107, RBP, 8);
    hole(0x100 + sizeof epilogue);
}

START_TEST(an_epilogue_that_gave_its_frame_pointer_back)
{
    begin();
    put_epilogue();
    change(libart);
    expect(0x100, RBP, 32);
    expect(0x103, RSP, 32);
    expect(0x105, RSP, 24);
    expect(0x106, RSP, 16);
    for (uint32_t at = 0x107; at < 0x100 + sizeof epilogue; at++)
        expect(at, RSP, 8);
    ck_assert_uint_eq(rule_at(0x100 + sizeof epilogue)->kind, QUT_RULE_HOLE);
    end();
}
END_TEST

START_TEST(other_libraries_stay_as_they_are)
{
    begin();
    put_epilogue();
    change("/usr/lib/libother.so");
    expect(0x103, RBP, 32);
    expect(0x107, RBP, 8);
    end();
}
END_TEST

// ret; shl $3,%eax; add $8,%rsp; ret: a branch comes behind the first return, with a word on the stack
START_TEST(a_way_out_behind_another_epilogue)
{
    static const uint8_t code[] = {0xc3, 0xc1, 0xe0, 0x03, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    begin();
    memcpy(text + 0x200, code, sizeof code);
    row(0x200, RSP, 8);
    row(0x208, RSP, 0);
    hole(0x209);
    change(libart);
    expect(0x200, RSP, 8);
    expect(0x201, RSP, 16);
    expect(0x204, RSP, 16);
    expect(0x208, RSP, 8);
    end();
}
END_TEST

// mov (%rsi),%rax; mov %rdi,%rsp; pop %r15; pop %rax; pop %rsp; ret
START_TEST(registers_from_a_record)
{
    static const uint8_t code[] = {0x48, 0x8b, 0x06, 0x48, 0x89, 0xfc, 0x41, 0x5f, 0x58, 0x5c, 0xc3};
    begin();
    memcpy(text + 0x80, code, sizeof code);
    row(0x80, RSP, 8);
    hole(0x80 + sizeof code);
    change(libart);
    expect(0x80, RSP, 8);
    expect(0x83, RSP, 8);
    for (uint32_t at = 0x86; at < 0x8a; at++)
        expect_refused(at);
    expect(0x8a, RSP, 8);
    end();
}
END_TEST

// push %rbp; mov %rsp,%rbp; sub $16,%rsp; lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret
START_TEST(right_rows_stay)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10,
                                   0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3, 0xc3};
    begin();
    memcpy(text, code, sizeof code);
    row(0, RSP, 8);
    row(1, RSP, 16);
    row(4, RBP, 16);
    row(14, RSP, 8);
    hole(16);
    change(libart);
    ck_assert_uint_eq(rows.count, 5);
    expect(4, RBP, 16);
    expect(13, RBP, 16);
    expect(14, RSP, 8);
    end();
}
END_TEST

START_TEST(what_is_proven)
{
    begin();
    put_epilogue();
    struct input_image *image = open_image(libart);
    struct qut_rule right = frame(RSP, 24), wrong = frame(RSP, 16), other = frame(RBP, 24);
    ck_assert(cfi_art_is_mended(image, TEXT + 0x105, &right));
    ck_assert(!cfi_art_is_mended(image, TEXT + 0x105, &wrong));
    ck_assert(!cfi_art_is_mended(image, TEXT + 0x105, &other));
    ck_assert(!cfi_art_is_mended(image, TEXT + 0x100, &right)); // sp is given another value on the way
    ck_assert(!cfi_art_is_mended(image, TEXT + TEXT_BYTES, &right));
    input_image_close(image);
    image = open_image("/usr/lib/libother.so");
    ck_assert(!cfi_art_is_mended(image, TEXT + 0x105, &right));
    input_image_close(image);
    end();
}
END_TEST

// push $0; push %r15; ...; call CALLEE
static void put_tracing_exit(uint32_t offset, uint64_t callee)
{
    static const uint8_t pushes[] = {0x6a, 0x00, 0x41, 0x57};
    uint32_t call_at = offset + 0x30;
    uint64_t distance = callee - (TEXT + call_at + 5);
    memcpy(text + offset, pushes, sizeof pushes);
    text[call_at] = 0xe8;
    for (unsigned i = 0; i < 4; i++)
        text[call_at + 1 + i] = (uint8_t)(distance >> 8 * i);
    row(offset, RSP, 0);
    row(offset + 2, RSP, WORD);
    row(offset + 4, RSP, 2 * WORD);
    row(offset + 0x40, RSP, WORD);
    text[offset + 0x40] = 0xc3;
    hole(offset + 0x80);
}

static struct input_range tracing_exit(uint64_t callee)
{
    struct input_image *image = open_image(libart);
    struct input_range found = cfi_art_tracing_exit(image, TEXT, &rules, &rows, callee);
    input_image_close(image);
    return found;
}

START_TEST(what_traced_methods_return_to_needs_no_symbol)
{
    enum { CALLEE = 0x18000, OTHER = 0x18010 };
    begin();
    put_epilogue();
    put_tracing_exit(0x180, OTHER);
    put_tracing_exit(0x280, CALLEE);
    struct input_range found = tracing_exit(CALLEE);
    ck_assert_uint_eq(found.start, TEXT + 0x280);
    ck_assert_uint_eq(found.end, TEXT + 0x300);
    struct input_image *image = open_image(libart);
    ck_assert_uint_eq(cfi_art_tracing_body(image, TEXT, &rules, &rows, found), TEXT + 0x2c1);
    text[0x2c0] = 0x90;
    input_image_close(image);
    image = open_image(libart);
    ck_assert_uint_eq(cfi_art_tracing_body(image, TEXT, &rules, &rows, found), 0);
    input_image_close(image);
    ck_assert_uint_eq(tracing_exit(0).end, 0);
    ck_assert_uint_eq(tracing_exit(CALLEE + 1).end, 0);
    text[0x281] = 1; // it pushes something else
    ck_assert_uint_eq(tracing_exit(CALLEE).end, 0);
    end();
}
END_TEST

// Any bytes, under any rows: the list stays in order, and rows that are no frames stay what they are.
START_TEST(any_code)
{
    srand((unsigned)_i + 1);
    begin();
    for (size_t i = 0; i < sizeof text; i++) {
        static const uint8_t often[] = {0xc3, 0x58, 0x5c, 0x50, 0x48, 0x89, 0xfc, 0x83, 0xc4, 0x08};
        text[i] = rand() % 2 ? often[(unsigned)rand() % sizeof often] : (uint8_t)rand();
    }
    uint32_t holes[64], hole_count = 0;
    for (uint32_t at = (uint32_t)rand() % 32; at < TEXT_BYTES; at += 1 + (uint32_t)rand() % 64) {
        if (rand() % 4 == 0 && hole_count < 64) {
            ck_assert_int_eq(cfi_row_list_reserve(&rows, 2, NULL), 0);
            hole(holes[hole_count++] = at);
        } else {
            ck_assert_int_eq(cfi_row_list_reserve(&rows, 2, NULL), 0);
            row(at, rand() % 2 ? RSP : RBP, rand() % 9 * WORD);
        }
    }
    change(libart);
    for (uint32_t i = 0; i < hole_count; i++)
        ck_assert_uint_eq(rule_at(holes[i])->kind, QUT_RULE_HOLE);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cfi_art_code");
    TCase *tests = tcase_create("cfi_art_code");
    tcase_add_test(tests, an_epilogue_that_gave_its_frame_pointer_back);
    tcase_add_test(tests, other_libraries_stay_as_they_are);
    tcase_add_test(tests, a_way_out_behind_another_epilogue);
    tcase_add_test(tests, registers_from_a_record);
    tcase_add_test(tests, right_rows_stay);
    tcase_add_test(tests, what_is_proven);
    tcase_add_test(tests, what_traced_methods_return_to_needs_no_symbol);
    tcase_add_loop_test(tests, any_code, 0, 200);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
