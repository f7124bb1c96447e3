// SPDX-License-Identifier: Apache-2.0
// Machine code of programs: each form of each instruction, with each register, and numbers at which something ends. The
// interpreter, the one that checks each step, and the code must leave the same in all registers and in the stack.
#include "bytecode/machine.h"

#include <stdio.h>
#include <string.h>

#include "bytecode/verify.h"
#include "tests/support/probe_machine.h"
#include "tests/support/run_suite.h"

enum { CODE_MAX = QUT_PROBE_INSTRUCTIONS_MAX, REGISTERS = 10, FIRST = QUT_PROBE_ARG0, SECOND = QUT_PROBE_ARG0 + 1 };

static struct image {
    struct qut_probe_header header;
    struct qut_probe_program program;
    struct qut_probe_map map;
    struct qut_probe_record record;
    struct qut_probe_instruction code[CODE_MAX];
} image;
static uint32_t count; // of its instructions

static void add(unsigned opcode, unsigned to, unsigned from, int offset, int32_t immediate)
{
    ck_assert_uint_lt(count, CODE_MAX);
    image.code[count++] =
        (struct qut_probe_instruction){(uint8_t)opcode, (uint8_t)(to | from << 4), (int16_t)offset, immediate};
}

static void add_wide(unsigned to, uint64_t number)
{
    add(0x18, to, 0, 0, (int32_t)(uint32_t)number);
    add(0, 0, 0, 0, (int32_t)(uint32_t)(number >> 32));
}

// All registers are set, two of them to what the fields say: r1, by which these are read, at the end.
static void begin(unsigned first, unsigned second)
{
    count = 0;
    for (unsigned i = 0; i < REGISTERS; i++)
        if (i != 1)
            add_wide(i, UINT64_C(0x8123456789abcdef) * (2 * i + 3));
    if (second != 1)
        add(0x79, second, 1, 8 * SECOND, 0);
    if (first != 1)
        add(0x79, first, 1, 8 * FIRST, 0);
    add(0x79, 1, 1, first == 1 ? 8 * FIRST : 8 * SECOND, 0);
}

// All registers go into the stack, which is looked at.
static struct qut_probe_image end(void)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        add(0x7b, 10, i, -8 - 8 * (int)i, 0);
    add(0x95, 0, 0, 0, 0);
    const uint32_t bytes = (uint32_t)(offsetof(struct image, code) + count * sizeof *image.code);
    image.header = (struct qut_probe_header){.magic = QUT_PROBE_MAGIC,
                                             .version = QUT_PROBE_VERSION,
                                             .total_bytes = bytes,
                                             .program_count = 1,
                                             .map_count = 1,
                                             .record_count = 1,
                                             .instruction_count = count};
    image.program = (struct qut_probe_program){
        .instruction_count = count, .kind = QUT_PROBE_ENTRY, .fields = 1u << FIRST | 1u << SECOND};
    image.map.key_words = 1;
    image.record.words = 2;
    static struct bytecode_workspace workspace;
    struct bytecode_fault fault;
    ck_assert_msg(bytecode_verify(&image, bytes, &workspace, &fault), "%s at %u", bytecode_refusal_text(fault.refusal),
                  fault.instruction);
    const struct qut_probe_image parts = qut_probe_parts(&image);
    const char *wrong = probe_machine_load(&parts, 0);
    ck_assert_msg(!wrong, "%s", wrong);
    return parts;
}

static void check(const struct qut_probe_image *parts, uint64_t first, uint64_t second, const char *what)
{
    uint64_t fields[QUT_PROBE_FIELD_END] = {[FIRST] = first, [SECOND] = second};
    const struct probe_judgement judged = probe_judge(parts, 0, fields);
    ck_assert_msg(!judged.wrong, "%s: %s", what, judged.wrong);
    const struct probe_judgement ran = probe_judge_runs(parts, 0, fields);
    ck_assert_msg(ran.result == judged.result && ran.calls_hash == judged.calls_hash, "%s: the interpreter", what);
    const char *differs = probe_machine_differs(parts, fields, &judged);
    ck_assert_msg(!differs, "%s of %llx and %llx: %s", what, (unsigned long long)first, (unsigned long long)second,
                  differs);
}

static const uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   7,
                                   31,
                                   32,
                                   63,
                                   0x7f,
                                   0x80,
                                   0xffff8000,
                                   INT32_MAX,
                                   UINT64_C(0x80000000),
                                   UINT32_MAX,
                                   UINT64_C(0x100000000),
                                   UINT64_C(0x123456789abcdef0),
                                   INT64_MAX,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX,
                                   (uint64_t)-128,
                                   (uint64_t)-129,
                                   (uint64_t)-1000};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

// Two registers: all numbers with all where they are two that stand for kinds of places, else some.
static void check_pairs(unsigned opcode, int offset)
{
    char what[64];
    for (unsigned to = 0; to < REGISTERS; to++)
        for (unsigned from = 0; from < REGISTERS; from++) {
            const unsigned step = to < 3 && from < 3 ? 1 : 6;
            begin(to, from);
            add(opcode, to, from, offset, 0);
            const struct qut_probe_image parts = end();
            snprintf(what, sizeof what, "%#x, offset %d, r%u, r%u", opcode, offset, to, from);
            for (unsigned a = (to + from) % step; a < NUMBERS; a += step)
                for (unsigned b = from % step; b < NUMBERS; b += step)
                    check(&parts, numbers[a], numbers[b], what);
        }
}

static void check_numbers(unsigned opcode, int offset)
{
    char what[64];
    for (unsigned to = 0; to < REGISTERS; to++)
        for (unsigned b = 0; b < NUMBERS; b++) {
            begin(to, to);
            add(opcode, to, 0, offset, (int32_t)(uint32_t)numbers[b]);
            const struct qut_probe_image parts = end();
            snprintf(what, sizeof what, "%#x, offset %d, r%u, %d", opcode, offset, to, (int)(uint32_t)numbers[b]);
            for (unsigned a = to < 3 ? 0 : b % 4; a < NUMBERS; a += to < 3 ? 1 : 4)
                check(&parts, numbers[a], 0, what);
        }
}

// 32 and 64 bits; codes as RFC 9669, section 4.1, numbers them.
static const unsigned classes[] = {QUT_PROBE_CLASS_ALU, QUT_PROBE_CLASS_ALU64};

START_TEST(operations_of_registers)
{
    const unsigned class = classes[_i];
    for (unsigned code = 0; code <= QUT_PROBE_ARSH; code += 0x10)
        if (code != QUT_PROBE_NEG)
            check_pairs(code | class | QUT_PROBE_SOURCE_X, 0);
    check_pairs(QUT_PROBE_DIV | class | QUT_PROBE_SOURCE_X, 1);
    check_pairs(QUT_PROBE_MOD | class | QUT_PROBE_SOURCE_X, 1);
    for (int bits = 8; bits <= (class == QUT_PROBE_CLASS_ALU64 ? 32 : 16); bits *= 2)
        check_pairs(QUT_PROBE_MOV | class | QUT_PROBE_SOURCE_X, bits);
}
END_TEST

START_TEST(operations_with_numbers)
{
    const unsigned class = classes[_i];
    for (unsigned code = 0; code <= QUT_PROBE_ARSH; code += 0x10)
        if (code != QUT_PROBE_NEG)
            check_numbers(code | class, 0);
    check_numbers(QUT_PROBE_DIV | class, 1);
    check_numbers(QUT_PROBE_MOD | class, 1);
    for (unsigned to = 0; to < REGISTERS; to++) {
        begin(to, to);
        add(QUT_PROBE_NEG | class, to, 0, 0, 0);
        const struct qut_probe_image parts = end();
        for (unsigned a = 0; a < NUMBERS; a++)
            check(&parts, numbers[a], 0, "-");
    }
}
END_TEST

START_TEST(wide_numbers)
{
    for (unsigned to = 0; to < REGISTERS; to++) {
        begin(to, to);
        for (unsigned a = 0; a < NUMBERS; a++) {
            add_wide(to, numbers[a]);
            add(0x7b, 10, to, -96 - 8 * (int)a, 0);
        }
        const struct qut_probe_image parts = end();
        check(&parts, 1, 2, "a wide number");
    }
}
END_TEST

// ---- jumps

static const unsigned conditions[] = {QUT_PROBE_JEQ, QUT_PROBE_JGT,  QUT_PROBE_JGE,  QUT_PROBE_JSET,
                                      QUT_PROBE_JNE, QUT_PROBE_JSGT, QUT_PROBE_JSGE, QUT_PROBE_JLT,
                                      QUT_PROBE_JLE, QUT_PROBE_JSLT, QUT_PROBE_JSLE};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

// Over so many instructions, of which each leaves its trace.
static void add_jump(unsigned opcode, unsigned to, unsigned from, int32_t immediate, unsigned over)
{
    const unsigned other = to == 7 || from == 7 ? 8 : 7;
    add(opcode, to, from, (int)over, immediate);
    for (unsigned i = 0; i < over; i++)
        add(0x07, other, 0, 0, 0x1000 + (int)i);
}

START_TEST(jumps)
{
    const unsigned class = _i ? QUT_PROBE_CLASS_JMP : QUT_PROBE_CLASS_JMP32;
    char what[64];
    for (unsigned c = 0; c < CONDITIONS; c++)
        for (unsigned to = 0; to < REGISTERS; to++)
            for (unsigned from = 0; from <= REGISTERS; from++) {
                const unsigned opcode = conditions[c] | class;
                snprintf(what, sizeof what, "%#x, r%u, r%u", opcode, to, from);
                begin(to, from < REGISTERS ? from : to);
                if (from < REGISTERS)
                    add_jump(opcode | QUT_PROBE_SOURCE_X, to, from, 0, 1 + (to * 7 + from) % 50);
                else // with each of the numbers
                    for (unsigned b = 0; b < NUMBERS; b++)
                        add_jump(opcode, to, 0, (int32_t)(uint32_t)numbers[b], 1 + b);
                const struct qut_probe_image parts = end();
                const unsigned step = to < 2 && from < 3 ? 1 : 6;
                for (unsigned a = to % step; a < NUMBERS; a += step)
                    for (unsigned b = from < REGISTERS ? from % step : 0; b < (from < REGISTERS ? NUMBERS : 1u);
                         b += step)
                        check(&parts, numbers[a], numbers[b], what);
            }
}
END_TEST

START_TEST(jumps_of_any_length)
{
    for (unsigned over = 0; over < CODE_MAX - 60; over += 1 + over / 8) {
        begin(2, 3);
        add_jump(0x15, 2, 0, 5, over);
        add_jump(0x05, 0, 0, 0, 0);
        const struct qut_probe_image parts = end();
        check(&parts, 5, 0, "a jump");
        check(&parts, 6, 0, "no jump");
    }
}
END_TEST

// ---- memory

static const unsigned sizes[] = {QUT_PROBE_SIZE_B, QUT_PROBE_SIZE_H, QUT_PROBE_SIZE_W, QUT_PROBE_SIZE_DW};

static void check_access(unsigned size, unsigned base, unsigned other, int at)
{
    const uint8_t bytes = (uint8_t)qut_probe_access_bytes((uint8_t)size);
    begin(other, other == 5 ? 6 : 5);
    for (int word = 0; word < 3; word++)
        add(0x7a, 10, 0, at - at % 8 - 8 * word, -0x01234567 * (word + 1));
    if (base < REGISTERS)
        add(0xbf, base, 10, 0, 0);
    const unsigned mode = QUT_PROBE_MODE_MEM | size;
    if (other != base)
        add(QUT_PROBE_CLASS_STX | mode, base, other, at, 0);
    add(QUT_PROBE_CLASS_ST | mode, base, 0, at - bytes, (int32_t)0x89abcdef);
    add(QUT_PROBE_CLASS_LDX | mode, other, base, at, 0);
    if (base < REGISTERS && base != other)
        add(0xb7, base, 0, 0, 1);
    const struct qut_probe_image parts = end();
    check(&parts, UINT64_C(0xfedcba9876543210), 0, "an access");
}

START_TEST(memory)
{
    for (unsigned size = 0; size < 4; size++)
        for (unsigned base = 0; base <= REGISTERS; base++)
            for (unsigned other = 0; other < REGISTERS; other++)
                for (int at = -104; at >= -488; at -= 64) {
                    check_access(sizes[size], base, other, at);
                    check_access(sizes[size], base, other, at - 8 + (int)qut_probe_access_bytes((uint8_t)sizes[size]));
                }
}
END_TEST

// ---- helpers

static void add_aggregate(unsigned value)
{
    add(0xbf, 3, value, 0, 0);
    add(0xbf, 2, 10, 0, 0);
    add(0x07, 2, 0, 0, -8);
    add(0xb7, 1, 0, 0, 0);
    add(0x85, 0, 0, 0, QUT_PROBE_AGGREGATE);
}

START_TEST(helpers)
{
    for (unsigned calls = 1; calls <= 40; calls += 3) {
        begin(6, 7);
        for (unsigned i = 0; i < calls; i++) {
            add(0x7b, 10, 6, -8, 0);
            add_aggregate(7 + i % 3);
            add(0x0f, 6, 0, 0, 0); // what it gave
        }
        add(0xbf, 1, 10, 0, 0);
        add(0x07, 1, 0, 0, -512);
        add(0xb7, 2, 0, 0, 61);
        add(0xbf, 3, 6, 0, 0);
        add(0x85, 0, 0, 0, QUT_PROBE_STRING);
        add(0xbf, 7, 0, 0, 0);
        for (unsigned i = 1; i <= 5; i++) // these are nobody's behind a call
            add(0xb7, i, 0, 0, (int)i);
        const struct qut_probe_image parts = end();
        for (unsigned a = 0; a < NUMBERS; a++)
            check(&parts, numbers[a], numbers[NUMBERS - 1 - a], "helpers");
    }
}
END_TEST

int main(void)
{
    if (!probe_machine_is_there()) {
        printf("SKIP: no translator for this machine\n");
        return 77;
    }
    Suite *suite = suite_create("machine");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, operations_of_registers, 0, 2);
    tcase_add_loop_test(all, operations_with_numbers, 0, 2);
    tcase_add_test(all, wide_numbers);
    tcase_add_loop_test(all, jumps, 0, 2);
    tcase_add_test(all, jumps_of_any_length);
    tcase_add_test(all, memory);
    tcase_add_test(all, helpers);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
