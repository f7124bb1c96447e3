// SPDX-License-Identifier: Apache-2.0
// Frame programs and records made to be misread.
#include "tests/unit/qutc/cfi/expect.h"

enum { RBP = 6, RSP = 7 };

#define ENTRY "cfa=rsp+8 ra=[cfa-8] fp=same"

static const struct arch *const x64 = &arch_x86_64;

// A program put together from instructions.
static void expect_built(struct build_buffer *program, const char *expected)
{
    expect_program(x64, program->data, program->size, expected);
    free(program->data);
    *program = (struct build_buffer){0};
}

static void put_with_register(struct build_buffer *program, uint8_t op, uint64_t reg)
{
    frame_put(program, op, 1);
    frame_put_uleb(program, reg);
}

START_TEST(numbers_that_wrap_to_a_register)
{
    static const uint64_t huge[] = {((uint64_t)1 << 32) + RSP, ((uint64_t)1 << 63) + RSP, ((uint64_t)1 << 32) + RBP,
                                    ((uint64_t)1 << 8) + RSP, ((uint64_t)1 << 16) + RSP};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        struct build_buffer program = {0};
        put_with_register(&program, CFA_DEF_CFA_REGISTER, huge[i]);
        expect_built(&program, "10000-10040 refused: REGISTER_RANGE\n");
        put_with_register(&program, CFA_DEF_CFA, huge[i]);
        frame_put(&program, 16, 1);
        expect_built(&program, "10000-10040 refused: REGISTER_RANGE\n");
        put_with_register(&program, CFA_DEF_CFA_SF, huge[i]);
        frame_put(&program, 16, 1);
        expect_built(&program, "10000-10040 refused: REGISTER_RANGE\n");
        // As the register saved: not one of ours.
        static const uint8_t ops[] = {CFA_OFFSET_EXTENDED, CFA_OFFSET_EXTENDED_SF,           CFA_VAL_OFFSET,
                                      CFA_VAL_OFFSET_SF,   CFA_GNU_NEGATIVE_OFFSET_EXTENDED, CFA_REGISTER};
        for (size_t op = 0; op < sizeof ops; op++) {
            put_with_register(&program, ops[op], huge[i]);
            frame_put(&program, 1, 1);
            expect_built(&program, "10000-10040 " ENTRY "\n");
        }
        put_with_register(&program, CFA_UNDEFINED, huge[i]);
        put_with_register(&program, CFA_SAME_VALUE, huge[i]);
        put_with_register(&program, CFA_RESTORE_EXTENDED, huge[i]);
        expect_built(&program, "10000-10040 " ENTRY "\n");
        // As the register it is copied to.
        put_with_register(&program, CFA_REGISTER, RBP);
        frame_put_uleb(&program, huge[i]);
        expect_built(&program, "10000-10040 refused: REGISTER_RANGE\n");
    }
}
END_TEST

START_TEST(numbers_longer_than_64_bits)
{
    // 7 + 2^64: read carelessly, rsp.
    expect_program(x64, BYTES(CFA_DEF_CFA_REGISTER, 0x87, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02),
                   "10000-10040 refused: BAD_PROGRAM\n");
    expect_program(x64, BYTES(CFA_OFFSET_EXTENDED, 0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 2),
                   "10000-10040 refused: BAD_PROGRAM\n");
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
                   "10000-10040 refused: BAD_PROGRAM\n");
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET_SF, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x3f),
                   "10000-10040 refused: BAD_PROGRAM\n");
    // Long, but not large: padding of a number is allowed.
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0),
                   "10000-10040 cfa=rsp+16 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(offsets_beyond_32_bits)
{
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET, 0xff, 0xff, 0xff, 0xff, 0x07),
                   "10000-10040 cfa=rsp+2147483647 ra=[cfa-8] fp=same\n");
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET, 0x80, 0x80, 0x80, 0x80, 0x08), "10000-10040 refused: OFFSET_RANGE\n");
    expect_program(x64, BYTES(CFA_DEF_CFA_OFFSET, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
                   "10000-10040 refused: OFFSET_RANGE\n");
    expect_program(x64, BYTES(CFA_OFFSET | RBP, 0x80, 0x80, 0x80, 0x80, 0x01), // * -8: exactly -2^31
                   "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa-2147483648]\n");
    expect_program(x64, BYTES(CFA_OFFSET | RBP, 0x81, 0x80, 0x80, 0x80, 0x01), "10000-10040 refused: OFFSET_RANGE\n");
    // Times -8 it wraps to a small number.
    expect_program(x64, BYTES(CFA_OFFSET | RBP, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20),
                   "10000-10040 refused: OFFSET_RANGE\n");
    // It passes with the rule that caused it.
    expect_program(x64, BYTES(CFA_OFFSET | RBP, 0x81, 0x80, 0x80, 0x80, 0x01, CFA_ADVANCE_LOC | 4, CFA_OFFSET | RBP, 2),
                   "10000-10004 refused: OFFSET_RANGE\n10004-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa-16]\n");
}
END_TEST

static void put_depth(struct build_buffer *program, int depth, uint8_t op)
{
    for (int i = 0; i < depth; i++)
        frame_put(program, op, 1);
}

START_TEST(a_thousand_states)
{
    struct build_buffer program = {0};
    for (int i = 0; i < 1000; i++) {
        frame_put(&program, CFA_DEF_CFA_OFFSET, 1);
        frame_put_uleb(&program, (uint64_t)(8 * i));
        frame_put(&program, CFA_REMEMBER_STATE, 1);
    }
    frame_put(&program, CFA_ADVANCE_LOC | 4, 1);
    put_depth(&program, 999, CFA_RESTORE_STATE);
    frame_put(&program, CFA_ADVANCE_LOC | 4, 1);
    put_depth(&program, 1, CFA_RESTORE_STATE);
    expect_built(&program, "10000-10004 cfa=rsp+7992 ra=[cfa-8] fp=same\n"
                           "10004-10008 cfa=rsp+8 ra=[cfa-8] fp=same\n"
                           "10008-10040 cfa=rsp+0 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(more_states_than_the_bound)
{
    struct build_buffer program = {0};
    put_depth(&program, 1024, CFA_REMEMBER_STATE);
    expect_built(&program, "10000-10040 " ENTRY "\n");
    put_depth(&program, 1024, CFA_REMEMBER_STATE);
    frame_put(&program, CFA_ADVANCE_LOC | 4, 1);
    put_depth(&program, 1, CFA_REMEMBER_STATE);
    expect_built(&program, "10000-10004 " ENTRY "\n10004-10040 refused: STATE_DEPTH\n");
}
END_TEST

START_TEST(what_was_not_remembered_cannot_be_restored)
{
    // The state to restore is that of rsp + 16, which was one too many; that of rsp + 8 belongs to another level.
    struct build_buffer program = {0};
    put_depth(&program, 1024, CFA_REMEMBER_STATE);
    build_add(&program, BYTES(CFA_DEF_CFA_OFFSET, 16, CFA_REMEMBER_STATE, CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE));
    expect_built(&program, "10000-10040 refused: STATE_DEPTH\n");
}
END_TEST

START_TEST(more_restored_than_remembered)
{
    expect_program(x64, BYTES(CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE),
                   "10000-10004 " ENTRY "\n10004-10040 refused: STATE_DEPTH\n");
    expect_program(x64,
                   BYTES(CFA_REMEMBER_STATE, CFA_RESTORE_STATE, CFA_RESTORE_STATE, CFA_ADVANCE_LOC | 4, CFA_DEF_CFA,
                         RSP, 16, CFA_OFFSET | RBP, 2),
                   "10000-10040 refused: STATE_DEPTH\n");
}
END_TEST

START_TEST(a_malformed_rest_is_not_undone)
{
    expect_program(x64, BYTES(CFA_REMEMBER_STATE, CFA_ADVANCE_LOC | 4, 0x3f, CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE),
                   "10000-10004 " ENTRY "\n10004-10040 refused: BAD_PROGRAM\n");
}
END_TEST

// A CIE, an FDE with this CIE pointer, and a good FDE.
static void expect_pointer(enum input_frame_kind kind, int64_t pointer, bool from_field)
{
    struct frame_asm a = frame_asm(x64, kind);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    size_t fde = frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x10});
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x20, .size = 0x10});
    uint32_t raw = (uint32_t)(from_field ? (int64_t)fde + 4 - pointer : pointer);
    memcpy(a.bytes.data + fde + 4, &raw, 4);
    struct qutc_compile_stats stats;
    expect_text(rows_of(&a, &stats), "10020-10030 " ENTRY "\n");
    ck_assert_uint_ge(stats.skipped_fdes, 1);
    frame_free(&a);
}

START_TEST(cie_pointers_that_lead_astray)
{
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    size_t first_fde = 0;
    frame_add_cie(&a, &cie);
    first_fde = a.bytes.size;
    frame_free(&a);
    expect_pointer(INPUT_FRAME_EH, (int64_t)first_fde, true);     // itself
    expect_pointer(INPUT_FRAME_EH, (int64_t)first_fde + 5, true); // its own middle
    expect_pointer(INPUT_FRAME_EH, 1, true);                      // the middle of the CIE
    expect_pointer(INPUT_FRAME_EH, -64, true);                    // before the section
    expect_pointer(INPUT_FRAME_EH, 0x7fffffff, false);            // far before it
    expect_pointer(INPUT_FRAME_EH, -0x7fffffff, false);           // 2 GiB forward, or back: neither is inside
    expect_pointer(INPUT_FRAME_DEBUG, 0x7fffffff, false);
    expect_pointer(INPUT_FRAME_DEBUG, 1, false);
}
END_TEST

START_TEST(fdes_in_a_ring)
{
    // Each is the other's CIE; after them stands a good pair.
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_DEBUG);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    size_t one = frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x10});
    size_t two = frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x10, .size = 0x10});
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x20, .size = 0x10});
    memcpy(a.bytes.data + one + 4, &(uint32_t){(uint32_t)two}, 4);
    memcpy(a.bytes.data + two + 4, &(uint32_t){(uint32_t)one}, 4);
    expect_rows(&a, "10020-10030 " ENTRY "\n");
}
END_TEST

START_TEST(records_cut_at_every_byte)
{
    struct frame_asm whole = frame_asm(x64, INPUT_FRAME_EH);
    struct frame_cie cie = {.augmentation = "zLRS"};
    frame_add_cie(&whole, &cie);
    frame_add_fde(&whole, &(struct frame_fde){.cie = &cie, .size = 0x10, .program = BYTES(CFA_DEF_CFA_OFFSET, 16)});
    size_t size = whole.bytes.size;
    for (whole.bytes.size = 1; whole.bytes.size < size; whole.bytes.size++) {
        char *text = rows_of(&whole, NULL);
        ck_assert_msg(strncmp(text, "error: ", 7) == 0, "%zu bytes: %s", whole.bytes.size, text);
        free(text);
    }
    // The same, with a length that agrees: the record itself is cut.
    for (size_t cut = 1; cut < size - 4; cut++) {
        struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
        build_add(&a.bytes, whole.bytes.data, size);
        uint32_t length;
        memcpy(&length, a.bytes.data, 4);
        length = length > cut ? length - (uint32_t)cut : 0;
        memcpy(a.bytes.data, &length, 4);
        free(rows_of(&a, NULL));
        frame_free(&a);
    }
    frame_free(&whole);
}
END_TEST

START_TEST(every_byte_of_a_section_changed)
{
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
    struct frame_cie cie = {.augmentation = "zLRS"};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a,
                  &(struct frame_fde){.cie = &cie,
                                      .size = 0x10,
                                      .program = BYTES(CFA_ADVANCE_LOC | 2, CFA_DEF_CFA_OFFSET, 16, CFA_OFFSET | RBP, 2,
                                                       CFA_DEF_CFA_EXPRESSION, 3, OP_BREG0 + RBP, 0, OP_DEREF)});
    for (size_t i = 0; i < a.bytes.size; i++) {
        for (unsigned flip = 1; flip < 256; flip += flip < 128 ? flip : 127) {
            a.bytes.data[i] ^= (uint8_t)flip;
            free(rows_of(&a, NULL));
            a.bytes.data[i] ^= (uint8_t)flip;
        }
    }
    frame_free(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile frame sections");
    TCase *tests = tcase_create("programs and records");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, numbers_that_wrap_to_a_register);
    tcase_add_test(tests, numbers_longer_than_64_bits);
    tcase_add_test(tests, offsets_beyond_32_bits);
    tcase_add_test(tests, a_thousand_states);
    tcase_add_test(tests, more_states_than_the_bound);
    tcase_add_test(tests, what_was_not_remembered_cannot_be_restored);
    tcase_add_test(tests, more_restored_than_remembered);
    tcase_add_test(tests, a_malformed_rest_is_not_undone);
    tcase_add_test(tests, cie_pointers_that_lead_astray);
    tcase_add_test(tests, fdes_in_a_ring);
    tcase_add_test(tests, records_cut_at_every_byte);
    tcase_add_test(tests, every_byte_of_a_section_changed);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
