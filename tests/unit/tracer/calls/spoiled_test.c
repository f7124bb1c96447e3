// SPDX-License-Identifier: Apache-2.0
// Plans whose bytes were changed: refused, or such that code can still be made of them within its bounds.
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_check.h"
#include "tests/support/run_suite.h"
#include "tracer/calls/patterns.h"
#include "tracer/calls/thunk.h"

static const char *subject_path;
static struct calls_plan *plan;

static void make_plan(void)
{
    struct base_error error = {0};
    ck_assert_int_eq(calls_plan_make(subject_path, NULL, &plan, &error), 0);
}

static void free_plan(void)
{
    calls_plan_free(plan);
}

static uint8_t *copy(void)
{
    uint8_t *bytes = malloc(plan->size_bytes);
    memcpy(bytes, plan->bytes, plan->size_bytes);
    return bytes;
}

static struct qut_plan_function *function_in(uint8_t *bytes, unsigned i)
{
    return (struct qut_plan_function *)(void *)(bytes + sizeof(struct qut_plan_header)) + i;
}

// The checksum is made right: it is not what these tests are about.
static void sum(uint8_t *bytes, size_t size)
{
    struct qut_plan_header *header = (struct qut_plan_header *)(void *)bytes;
    if (size >= sizeof *header)
        header->checksum = qut_table_checksum(header + 1, size - sizeof *header);
}

static bool is_taken(uint8_t *bytes, size_t size)
{
    sum(bytes, size);
    struct calls_plan *taken;
    struct base_error error = {0};
    if (calls_plan_take(bytes, size, &taken, &error) != 0) {
        ck_assert_int_eq(error.reason, BASE_ERR_MALFORMED);
        return false;
    }
    calls_plan_free(taken);
    return true;
}

START_TEST(the_plan_itself_is_taken)
{
    ck_assert(is_taken(copy(), plan->size_bytes));
}
END_TEST

START_TEST(what_is_cut_off_is_refused)
{
    for (size_t size = 0; size < plan->size_bytes; size += size < 256 ? 1 : 97)
        ck_assert(!is_taken(copy(), size));
}
END_TEST

// The first function is `plain`: two instructions of 3 bytes each.
static void spoil_one(uint8_t *bytes, int which)
{
    struct qut_plan_header *header = (struct qut_plan_header *)(void *)bytes;
    struct qut_plan_function *function = function_in(bytes, 0);
    switch (which) {
    case 0: header->magic[0] ^= 1; break;
    case 1: header->version++; break;
    case 2: header->function_count++; break;
    case 3: header->names_bytes = 0; break;
    case 4: header->identity_size = QUT_PLAN_IDENTITY_MAX + 1; break;
    case 5: header->alias_count = UINT32_MAX; break;
    case 6: function->kind = QUT_PLAN_KIND_END; break;
    case 7: function->kind = QUT_PLAN_REFUSED; break;
    case 8: function->refusal = QUT_PLAN_GO; break;
    case 9: function->name = header->names_bytes; break;
    case 10: function->readable = UINT32_MAX; break;
    case 11: function->patch_bytes = 4; break;
    case 12: function->patch_at = 5; break;
    case 13: function->moved_bytes++; break;
    case 14: function->instruction_count = 0; break;
    case 15: function->instruction_count = QUT_PLAN_MOVES_MAX + 1; break;
    case 16: function->code_bytes = QUT_PLAN_CODE_MAX + 1; break;
    case 17: function->instructions[0].length = 0; break;
    case 18: function->instructions[0].length = 16; break;
    case 19: function->instructions[0].move = QUT_MOVE_END; break;
    case 20: function->instructions[0].move = QUT_MOVE_ADDRESS; break;
    case 21: function->instructions[0].move = QUT_MOVE_CALL; break;
    case 22: function->instructions[0].operand_at = 3; break;
    case 23: function->entry_vaddr = header->text_end; break;
    case 24: function->entry_vaddr = function_in(bytes, 1)->entry_vaddr; break;
    case 25: function->size_bytes = UINT32_MAX; break;
    case 26: bytes[plan->size_bytes - 1 - (-header->names_bytes & 7)] = 'x'; break;
    default: break;
    }
}
enum { SPOILED = 27 };

START_TEST(each_spoiled_field_is_refused)
{
    uint8_t *bytes = copy();
    spoil_one(bytes, _i);
    ck_assert_msg(!is_taken(bytes, plan->size_bytes), "%d", _i);
}
END_TEST

// Any byte at random: what is still taken makes code that fits.
START_TEST(what_is_taken_can_be_used)
{
    uint32_t state = 12345;
    unsigned taken_count = 0;
    for (unsigned round = 0; round < 4000; round++) {
        uint8_t *bytes = copy();
        struct calls_plan *taken;
        state = state * 1664525 + 1013904223;
        bytes[sizeof(struct qut_plan_header) + (state >> 4) % (plan->size_bytes - sizeof(struct qut_plan_header))] ^=
            (uint8_t)(1u << (state & 7));
        sum(bytes, plan->size_bytes);
        if (calls_plan_take(bytes, plan->size_bytes, &taken, NULL) != 0)
            continue;
        taken_count++;
        for (uint32_t i = 0; i < taken->header->function_count; i++) {
            struct calls_thunk_place place = {.load_bias = 0x10000000,
                                              .thunk_address = 0x20000040,
                                              .block_address = 0x20000000,
                                              .function_id = 7,
                                              .thinned_id = round & 2 ? 77 : 0,
                                              .thinning_log2 = round % 32,
                                              .enter_thunk = (round & 4 ? UINT64_C(1) << 40 : 0) + 4096,
                                              .is_counted = round & 1};
            struct calls_thunk thunk;
            struct calls_patch patch;
            if (calls_thunk_make(&taken->functions[i], &place, &thunk))
                ck_assert_uint_le(thunk.size_bytes, QUT_CALLS_THUNK_BYTES_MAX);
            calls_patch_make(&taken->functions[i], &place, &patch);
            ck_assert_uint_le(patch.piece_count, 2);
        }
        calls_plan_free(taken);
    }
    ck_assert_uint_gt(taken_count, 200);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("spoiled");
    TCase *tests = tcase_create("spoiled");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_plan, free_plan);
    tcase_add_test(tests, the_plan_itself_is_taken);
    tcase_add_test(tests, what_is_cut_off_is_refused);
    tcase_add_loop_test(tests, each_spoiled_field_is_refused, 0, SPOILED);
    tcase_add_test(tests, what_is_taken_can_be_used);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
