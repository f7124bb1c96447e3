// SPDX-License-Identifier: Apache-2.0
// What a run of frame programs remembers changes nothing: random programs, each again and again in one run, against an
// interpreter that applies one instruction after the other to a whole state.
#include <check.h>
#include <stdlib.h>

#include "base/encoded_pointer_inline.h"
#include "qutc/cfi/frame_program.h"
#include "qutc/cfi/state.h"
#include "tests/support/frame_asm.h"
#include "tests/support/run_suite.h"

enum { PROGRAM_MAX = 64, ROWS_MAX = PROGRAM_MAX + 2, TEXT_START = 0x10000, PROGRAMS = 3000, RUNS = 3 };

struct expected {
    struct qut_rule rules[ROWS_MAX];
    uint32_t pcs_rel[ROWS_MAX];
    size_t count;
};

static void put(struct expected *rows, uint64_t pc_rel, struct qut_rule rule)
{
    if (rows->count && memcmp(&rows->rules[rows->count - 1], &rule, sizeof rule) == 0)
        return;
    rows->pcs_rel[rows->count] = (uint32_t)pc_rel;
    rows->rules[rows->count++] = rule;
}

// False where it is malformed.
static bool read_location(const struct cfi_cie *cie, const struct cfi_fde *fde, uint8_t op, struct base_cursor *c,
                          uint64_t *row_rel)
{
    uint64_t delta = op & 0x3f, distance, target;
    switch (op) {
    case CFA_SET_LOC:
        target = base_read_uint(c, cie->address_size) - TEXT_START;
        if (c->failed || cie->pointer_encoding != PE_ABSPTR || target < *row_rel || target > fde->end_rel)
            return false;
        *row_rel = target;
        return true;
    case CFA_ADVANCE_LOC1: delta = base_read_u8(c); break;
    case CFA_ADVANCE_LOC2: delta = base_read_u16(c); break;
    case CFA_ADVANCE_LOC4: delta = base_read_u32(c); break;
    case CFA_MIPS_ADVANCE_LOC8: delta = base_read_u64(c); break;
    default: break;
    }
    if (__builtin_mul_overflow(delta, cie->code_align, &distance) || distance > fde->end_rel - *row_rel)
        distance = fde->end_rel - *row_rel;
    *row_rel += distance;
    return !c->failed;
}

static void interpret(const struct arch *arch, const struct cfi_cie *cie, const struct cfi_fde *fde,
                      struct expected *rows)
{
    static struct qut_rule remembered[PROGRAM_MAX];
    size_t depth = 0;
    struct qut_rule state = cfi_state_start(arch, cie);
    struct base_cursor c = base_cursor(cie->program);
    ck_assert(cfi_state_apply(&state, NULL, arch, cie, &c));
    const struct qut_rule initial = state;
    uint64_t row_rel = fde->start_rel;
    rows->count = 0;
    c = base_cursor((struct base_bytes){fde->program, fde->program_size});
    while (base_cursor_left(&c) && row_rel < fde->end_rel && state.kind == QUT_RULE_FRAME) {
        struct base_cursor instruction = c;
        const uint8_t op = base_read_u8(&c);
        const enum cfi_op_shape shape = cfi_op_shape(op);
        bool understood = true;
        if (op == CFA_NOP)
            continue;
        if (op == CFA_REMEMBER_STATE) {
            remembered[depth++] = state;
        } else if (op == CFA_RESTORE_STATE) {
            state = depth ? remembered[--depth] : cfi_rule_refused(QUT_REFUSED_STATE_DEPTH);
        } else if (shape == CFI_OP_ADVANCE) {
            const uint64_t from_rel = row_rel;
            understood = read_location(cie, fde, op, &c, &row_rel);
            if (understood && row_rel != from_rel)
                put(rows, from_rel, cfi_state_rule(&state, arch));
        } else if (shape == CFI_OP_CFA) {
            understood = cfi_state_apply_cfa(&state.cfa, arch, cie, op, &c) && base_cursor_is_sound(&c);
        } else if (shape != CFI_OP_OTHER) {
            cfi_skip_operands(&c, shape);
            instruction.end = c.at;
            understood = !c.failed && cfi_state_apply(&state, &initial, arch, cie, &instruction);
        } else {
            understood = false;
        }
        if (!understood)
            state = cfi_rule_refused(QUT_REFUSED_BAD_PROGRAM);
    }
    if (row_rel < fde->end_rel)
        put(rows, row_rel, cfi_state_rule(&state, arch));
    put(rows, fde->end_rel, cfi_rule_hole());
}

static uint8_t any_of(const uint8_t *bytes, size_t count)
{
    return bytes[(size_t)rand() % count];
}
#define ANY_OF(...) any_of((const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__})

// What compilers write, with offsets about where they are no longer near, or take another byte; cut off anywhere. Now
// and then a byte is another.
static size_t make_program(uint8_t *program)
{
    struct build_buffer all = {0};
    const size_t size = (size_t)rand() % PROGRAM_MAX;
    while (all.size < size) {
        const int kind = rand() % 16;
        if (kind < 9 || kind == 15)
            frame_put(&all, (uint8_t)(CFA_ADVANCE_LOC | ANY_OF(0, 1, 2, 5, 63)), 1);
        if (kind < 6 || kind == 9) {
            frame_put(&all, CFA_DEF_CFA_OFFSET, 1);
            frame_put_uleb(&all, ANY_OF(8, 12, 16, 60, 64, 112, 120, 127, 128, 255));
        } else if (kind < 8 || kind == 10) {
            frame_put(&all, (uint8_t)(CFA_OFFSET | ANY_OF(3, 5, 6, 16, 29)), 1);
            frame_put_uleb(&all, ANY_OF(2, 3, 4, 200));
        } else if (kind == 11) {
            const uint8_t op = ANY_OF(CFA_ADVANCE_LOC1, CFA_ADVANCE_LOC2, CFA_ADVANCE_LOC4);
            frame_put(&all, op, 1);
            frame_put(&all, ANY_OF(0, 9, 80, 255), op == CFA_ADVANCE_LOC1 ? 1 : op == CFA_ADVANCE_LOC2 ? 2 : 4);
        } else if (kind == 12) {
            frame_put(
                &all,
                ANY_OF(CFA_DEF_CFA_REGISTER, CFA_SAME_VALUE, CFA_UNDEFINED, CFA_RESTORE_EXTENDED, CFA_GNU_ARGS_SIZE),
                1);
            frame_put_uleb(&all, ANY_OF(3, 6, 7, 29, 200));
        } else if (kind == 13) {
            frame_put(&all,
                      ANY_OF(CFA_DEF_CFA, CFA_DEF_CFA, CFA_OFFSET_EXTENDED, CFA_OFFSET_EXTENDED_SF, CFA_REGISTER,
                             CFA_VAL_OFFSET),
                      1);
            frame_put_uleb(&all, ANY_OF(3, 6, 7, 29, 31, 130));
            frame_put_uleb(&all, ANY_OF(8, 16, 120, 200));
        } else if (kind == 14 && rand() % 4 == 0) { // *(reg + 8)
            static const uint8_t expression[] = {CFA_DEF_CFA_EXPRESSION, 3, OP_BREG0 + 6, 8, OP_DEREF};
            for (size_t i = 0; i < sizeof expression; i++)
                frame_put(&all, expression[i], 1);
        } else if (kind == 14) {
            frame_put(&all,
                      ANY_OF(CFA_REMEMBER_STATE, CFA_RESTORE_STATE, CFA_RESTORE | 3, CFA_NOP,
                             CFA_AARCH64_NEGATE_RA_STATE, 0x3f),
                      1);
        }
    }
    if (size && rand() % 8 == 0)
        all.data[(size_t)rand() % size] = (uint8_t)rand();
    if (size)
        memcpy(program, all.data, size);
    free(all.data);
    return size;
}

static const struct {
    const struct arch *arch;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    uint8_t program[5]; // an offset of a word behind the stack pointer, mostly; the return address where it is saved
} cies[] = {
    {&arch_x86_64, 1, -8, 16, {CFA_DEF_CFA, 7, 8, CFA_OFFSET | 16, 1}},
    {&arch_x86_64, UINT64_MAX, -8, 16, {CFA_DEF_CFA, 7, 8, CFA_OFFSET | 16, 1}},
    {&arch_x86_64, (UINT64_C(1) << 32) + 1, -8, 16, {CFA_DEF_CFA, 7, 8, CFA_OFFSET | 16, 1}},
    {&arch_x86, 1, -4, 8, {CFA_DEF_CFA, 4, 4, CFA_OFFSET | 8, 1}},
    {&arch_aarch64, 4, -8, 30, {CFA_DEF_CFA, 31, 0}},
    {&arch_riscv64, 2, -4, 1, {CFA_DEF_CFA_REGISTER, 2}},
};

START_TEST(changes_nothing)
{
    const struct arch *arch = cies[_i].arch;
    struct cfi_cie cie = {.address_size = arch->word_bytes,
                          .code_align = cies[_i].code_align,
                          .data_align = cies[_i].data_align,
                          .ra_column = cies[_i].ra_column,
                          .program = {cies[_i].program, sizeof cies[_i].program}};
    struct cfi_rule_set rules;
    struct cfi_program_runner runner;
    struct base_error error = {0};
    size_t known_rows = 0;
    ck_assert_int_eq(cfi_rule_set_init(&rules, &error), 0);
    ck_assert_int_eq(cfi_program_runner_init(&runner, arch, &rules, &error), 0);
    srand((unsigned)_i + 1);
    for (int i = 0; i < PROGRAMS; i++) {
        uint8_t program[PROGRAM_MAX];
        const size_t size = make_program(program);
        uint8_t *exact = malloc(size ? size : 1); // what is read behind it is found by others
        memcpy(exact, program, size);
        const struct cfi_fde fde = {.start_rel = 0x40,
                                    .end_rel = 0x40 + 1 + (uint32_t)rand() % 300,
                                    .program = exact,
                                    .program_size = (uint32_t)size};
        static struct expected expected;
        interpret(arch, &cie, &fde, &expected);
        for (int run = 0; run < RUNS; run++) {
            struct cfi_row_list rows = {0};
            ck_assert_int_eq(cfi_program_run(&runner, &cie, &fde, TEXT_START, &rows, &error), 0);
            ck_assert_uint_eq(rows.count, expected.count);
            for (size_t row = 0; row < rows.count; row++) {
                ck_assert_uint_eq(rows.rows[row].pc_rel, expected.pcs_rel[row]);
                ck_assert_mem_eq(&rules.rules[rows.rows[row].rule_id], &expected.rules[row], sizeof *rules.rules);
            }
            known_rows += run ? rows.count : 0;
            cfi_row_list_free(&rows);
        }
        free(exact);
    }
    ck_assert_uint_ge(known_rows, PROGRAMS * (RUNS - 1) * 2);
    cfi_program_runner_free(&runner);
    cfi_rule_set_free(&rules);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("remembered");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, changes_nothing, 0, sizeof cies / sizeof *cies);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
