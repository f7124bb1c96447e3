// SPDX-License-Identifier: Apache-2.0
// What is read without Zydis is what Zydis says: of random bytes, and of all bytes of a program's code, at any of them:
// common_test PROGRAM.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "qutc/input/image.h"
#include "tests/support/run_suite.h"
#include "tracer/calls/inside.h"

static const char *program;
enum { ROUNDS = 300000, BYTES = 16, COMMON_SHARE = 60 };

static bool is_same(const struct calls_instruction *a, const struct calls_instruction *b)
{
    return a->length == b->length && a->flow == b->flow && a->operand_at == b->operand_at && a->base == b->base &&
           a->words == b->words && a->signs == b->signs && a->reads_link == b->reads_link &&
           a->writes_link == b->writes_link && a->is_nop == b->is_nop && a->is_landing_mark == b->is_landing_mark &&
           a->is_pop == b->is_pop && a->is_movable == b->is_movable && a->has_address == b->has_address &&
           a->is_lea == b->is_lea && a->target == b->target && a->offset == b->offset && a->constant == b->constant;
}

static void tell(const struct calls_instruction *in, char *text, size_t size)
{
    snprintf(text, size, "length %u flow %u at %u base %u nop %d pop %d lea %d movable %d address %d %llx %llx %llx",
             in->length, in->flow, in->operand_at, in->base, in->is_nop, in->is_pop, in->is_lea, in->is_movable,
             in->has_address, (unsigned long long)in->target, (unsigned long long)in->offset,
             (unsigned long long)in->constant);
}

// Whether it was read without.
static bool compare(struct base_bytes bytes, uint64_t vaddr)
{
    struct calls_instruction own, judge = {0};
    if (!calls_read_common_x86_64(bytes, vaddr, &own))
        return false;
    if (calls_read_by_zydis(bytes, vaddr, &judge) && is_same(&own, &judge))
        return true;
    char code[3 * BYTES + 1] = "", one[256], other[256];
    for (unsigned i = 0; i < bytes.size && i < BYTES; i++)
        snprintf(code + 3 * i, 4, "%02x ", bytes.data[i]);
    tell(&own, one, sizeof one);
    tell(&judge, other, sizeof other);
    ck_abort_msg("%s: %s; Zydis: %s", code, one, other);
}

// Each opcode with each ModRM, before random bytes.
START_TEST(random_bytes)
{
    uint64_t random = 88172645463325252u;
    unsigned common = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t bytes[BYTES];
        for (unsigned k = 0; k < BYTES; k += 8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            memcpy(bytes + k, &random, sizeof random);
        }
        unsigned at = 0;
        if (i & 1)
            bytes[at++] = (uint8_t)(0x40 | (bytes[15] & 15));
        if (i & 2)
            bytes[at++] = 0x0f;
        bytes[at] = (uint8_t)(i >> 2);
        bytes[at + 1] = (uint8_t)(i >> 10);
        common += compare((struct base_bytes){bytes, i % 7 ? BYTES : bytes[14] % BYTES}, 0x1000);
    }
    ck_assert_uint_gt(common, ROUNDS / 4);
}
END_TEST

START_TEST(a_program)
{
    struct input_image *image;
    struct base_error error = {0};
    const struct input_image_options options = {.identity_only = false};
    uint64_t common = 0, all = 0;
    ck_assert_int_eq(input_image_open(program, NULL, 0, 0, &options, &image, &error), 0);
    for (unsigned i = 0; i < image->exec_count; i++) {
        const struct base_bytes code =
            input_image_some(image, image->exec[i].start, image->exec[i].end - image->exec[i].start);
        for (size_t at = 0; at < code.size; at++, all++)
            common += compare((struct base_bytes){code.data + at, code.size - at}, image->exec[i].start + at);
    }
    input_image_close(image);
    printf("# %llu of %llu\n", (unsigned long long)common, (unsigned long long)all);
    ck_assert_uint_gt(common * 100, all * COMMON_SHARE);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    program = argv[1];
    Suite *suite = suite_create("common");
    TCase *tests = tcase_create("common");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_bytes);
    tcase_add_test(tests, a_program);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
