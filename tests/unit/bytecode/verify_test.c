// SPDX-License-Identifier: Apache-2.0
// Each reason for which a program is refused, met by the smallest one; and what is taken runs as RFC 9669 says.
#include "bytecode/verify.h"

#include <string.h>

#include "tests/support/probe_judge.h"
#include "tests/support/run_suite.h"

enum { CODE_MAX = 24 };

struct image {
    struct qut_probe_header header;
    struct qut_probe_program program;
    struct qut_probe_map maps[2];
    struct qut_probe_record record;
    struct qut_probe_instruction code[CODE_MAX];
};

#define I(OPCODE, TO, FROM, OFFSET, IMMEDIATE)                                                                         \
    {                                                                                                                  \
        OPCODE, (TO) | (FROM) << 4, OFFSET, IMMEDIATE                                                                  \
    }
#define MOV(TO, NUMBER)        I(0xb7, TO, 0, 0, NUMBER)
#define COPY(TO, FROM)         I(0xbf, TO, FROM, 0, 0)
#define EXIT                   I(0x95, 0, 0, 0, 0)
#define CALL(HELPER)           I(0x85, 0, 0, 0, HELPER)
#define PUT(OFFSET, NUMBER)    I(0x7a, 10, 0, OFFSET, NUMBER)
#define LOAD(TO, FROM, OFFSET) I(0x79, TO, FROM, OFFSET, 0)

static uint32_t length_of(const struct qut_probe_instruction *code)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < CODE_MAX; i++)
        if (code[i].opcode || code[i].registers || code[i].offset || code[i].immediate)
            last = i + 1;
    return last;
}

// One program, a map by one word, a value without a key, a record of two words.
static size_t make(struct image *image, const struct qut_probe_instruction *code, enum qut_probe_kind kind)
{
    memset(image, 0, sizeof *image);
    const uint32_t count = length_of(code);
    const size_t size = offsetof(struct image, code) + count * sizeof *code;
    image->header = (struct qut_probe_header){.magic = QUT_PROBE_MAGIC,
                                              .version = QUT_PROBE_VERSION,
                                              .total_bytes = (uint32_t)size,
                                              .program_count = 1,
                                              .map_count = 2,
                                              .record_count = 1,
                                              .instruction_count = count};
    image->program = (struct qut_probe_program){.instruction_count = count, .kind = kind};
    image->program.fields = 1u << QUT_PROBE_TIME | (kind == QUT_PROBE_ENTRY ? 1u << QUT_PROBE_ARG0 : 0);
    image->maps[0].key_words = 1;
    image->maps[1].kind = QUT_PROBE_VALUE;
    image->record.words = 2;
    memcpy(image->code, code, count * sizeof *code);
    return size;
}

static struct bytecode_fault fault_of(const struct image *image, size_t size)
{
    static struct bytecode_workspace workspace;
    struct bytecode_fault fault;
    memset(&workspace, 0xa5, sizeof workspace);
    const bool is_good = bytecode_verify(image, size, &workspace, &fault);
    ck_assert_int_eq(is_good, fault.refusal == BYTECODE_OK);
    return fault;
}

static const struct refused {
    enum bytecode_refusal refusal;
    uint32_t at;
    struct qut_probe_instruction code[CODE_MAX];
} refused[] = {
    {BYTECODE_OPCODE, 0, {I(0xd4, 0, 0, 0, 16), MOV(0, 0), EXIT}},                       // a byte swap
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0xdb, 10, 0, -8, 0), EXIT}},                      // an atomic addition
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0x20, 0, 0, 0, 0), EXIT}},                        // a packet's bytes
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0x8d, 0, 0, 0, 1), EXIT}},                        // a call by a register
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0x06, 0, 0, 0, 0), EXIT}},                        // a long jump
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0x8f, 0, 0, 0, 0), EXIT}},                        // -, by a register
    {BYTECODE_OPCODE, 1, {MOV(0, 0), I(0xe5, 0, 0, 0, 0), EXIT}},                        // a jump that there is not
    {BYTECODE_RESERVED, 0, {I(0xb7, 0, 1, 0, 0), EXIT}},                                 // a register beside a number
    {BYTECODE_RESERVED, 1, {MOV(1, 0), I(0xbf, 0, 1, 4, 0), EXIT}},                      // extended from 4 bits
    {BYTECODE_RESERVED, 1, {MOV(0, 0), I(0x07, 0, 0, 1, 0), EXIT}},                      // a signed sum
    {BYTECODE_RESERVED, 1, {MOV(0, 0), I(0x95, 0, 0, 1, 0)}},                            //
    {BYTECODE_RESERVED, 0, {I(0x18, 0, 1, 0, 0), I(0, 0, 0, 0, 0), EXIT}},               // a map's address
    {BYTECODE_RESERVED, 0, {I(0x18, 0, 0, 0, 0), MOV(0, 0), EXIT}},                      // half a number
    {BYTECODE_REGISTER, 0, {MOV(10, 0), EXIT}},                                          // the stack's
    {BYTECODE_REGISTER, 0, {MOV(11, 0), EXIT}},                                          //
    {BYTECODE_REGISTER, 0, {COPY(0, 11), EXIT}},                                         //
    {BYTECODE_REGISTER, 0, {LOAD(0, 12, 0), EXIT}},                                      //
    {BYTECODE_REGISTER, 0, {I(0x07, 10, 0, 0, -8), EXIT}},                               //
    {BYTECODE_UNSET, 0, {EXIT}},                                                         //
    {BYTECODE_UNSET, 0, {COPY(0, 2), EXIT}},                                             //
    {BYTECODE_UNSET, 3, {MOV(3, 1), I(0x15, 3, 0, 1, 0), MOV(0, 1), EXIT}},              // on one of two ways
    {BYTECODE_STACK, 4, {PUT(-8, 0), COPY(2, 10), MOV(1, 0), MOV(3, 1), CALL(3), EXIT}}, // a key behind the stack
    {BYTECODE_POINTER, 1, {COPY(0, 1), EXIT}},                                           // gives an address away
    {BYTECODE_POINTER, 0, {I(0x7b, 10, 1, -8, 0), MOV(0, 0), EXIT}},                     //
    {BYTECODE_POINTER, 0, {I(0x07, 1, 0, 0, 8), MOV(0, 0), EXIT}},                       //
    {BYTECODE_POINTER, 1, {COPY(2, 10), I(0x0f, 2, 2, 0, 0), MOV(0, 0), EXIT}},          //
    {BYTECODE_POINTER, 1, {COPY(2, 10), I(0x57, 2, 0, 0, -8), MOV(0, 0), EXIT}},         //
    {BYTECODE_POINTER, 1, {COPY(2, 10), I(0x04, 2, 0, 0, -8), MOV(0, 0), EXIT}},         // half of an address
    {BYTECODE_POINTER, 0, {I(0x15, 1, 0, 0, 0), MOV(0, 0), EXIT}},                       //
    {BYTECODE_POINTER, 0, {I(0x7a, 1, 0, 0, 0), MOV(0, 0), EXIT}},                       // writes a field
    {BYTECODE_NUMBER, 1, {MOV(2, 64), LOAD(0, 2, 0), EXIT}},                             // reads at any address
    {BYTECODE_NUMBER, 1, {MOV(2, 64), I(0x7a, 2, 0, 0, 0), EXIT}},                       // writes there
    {BYTECODE_BACKWARDS, 1, {MOV(0, 0), I(0x05, 0, 0, -1, 0), EXIT}},                    //
    {BYTECODE_BACKWARDS, 1, {MOV(0, 0), I(0x15, 0, 0, -2, 0), EXIT}},                    //
    {BYTECODE_OUTSIDE, 1, {MOV(0, 0), I(0x05, 0, 0, 1, 0), EXIT}},                       //
    {BYTECODE_OUTSIDE, 1, {MOV(0, 0), I(0x15, 0, 0, 0x7fff, 0), EXIT}},                  //
    {BYTECODE_OUTSIDE, 2, {MOV(0, 0), I(0x15, 0, 0, 1, 0), I(0x18, 1, 0, 0, 1), I(0, 0, 0, 0, 1), EXIT}},
    {BYTECODE_FALLS_OUT, 0, {MOV(0, 7)}},                                             //
    {BYTECODE_FALLS_OUT, 1, {MOV(0, 0), I(0x18, 1, 0, 0, 1)}},                        //
    {BYTECODE_UNREACHED, 2, {MOV(0, 0), EXIT, MOV(0, 1), EXIT}},                      //
    {BYTECODE_STACK, 0, {PUT(0, 1), MOV(0, 0), EXIT}},                                //
    {BYTECODE_STACK, 0, {PUT(-520, 1), MOV(0, 0), EXIT}},                             //
    {BYTECODE_STACK, 1, {COPY(2, 10), I(0x07, 2, 0, 0, -513), MOV(0, 0), EXIT}},      //
    {BYTECODE_STACK, 1, {COPY(2, 10), I(0x17, 2, 0, 0, -1), MOV(0, 0), EXIT}},        //
    {BYTECODE_STACK, 1, {COPY(2, 10), I(0x17, 2, 0, 0, INT32_MIN), MOV(0, 0), EXIT}}, //
    {BYTECODE_ALIGNMENT, 0, {PUT(-12, 1), MOV(0, 0), EXIT}},                          //
    {BYTECODE_UNWRITTEN, 0, {LOAD(0, 10, -8), EXIT}},                                 //
    {BYTECODE_UNWRITTEN, 0, {I(0x62, 10, 0, -8, 1), MOV(0, 0), EXIT}},                // a part of a word
    {BYTECODE_UNWRITTEN, 3, {MOV(3, 0), I(0x15, 3, 0, 1, 0), PUT(-8, 1), LOAD(0, 10, -8), EXIT}},
    {BYTECODE_UNWRITTEN,
     5, // the way that writes comes first
     {MOV(3, 0), I(0x15, 3, 0, 2, 0), PUT(-8, 1), I(0x05, 0, 0, 1, 0), MOV(4, 0), LOAD(0, 10, -8), EXIT}},
    {BYTECODE_UNSET, 5, {MOV(3, 0), I(0x15, 3, 0, 2, 0), MOV(0, 1), I(0x05, 0, 0, 1, 0), MOV(4, 0), EXIT}},
    {BYTECODE_UNSET, 4, {MOV(1, 1), MOV(3, 1), MOV(5, 1), CALL(QUT_PROBE_AGGREGATE), COPY(0, 5), EXIT}},
    {BYTECODE_UNSET,
     7, // two addresses, of which one is known at most
     {COPY(2, 10), MOV(3, 0), I(0x15, 3, 0, 2, 0), I(0x07, 2, 0, 0, -8), I(0x05, 0, 0, 1, 0), I(0x07, 2, 0, 0, -16),
      MOV(0, 0), I(0x7a, 2, 0, 8, 0), EXIT}},
    {BYTECODE_FIELD, 0, {LOAD(0, 1, 8), EXIT}},                               // arg1 is not claimed
    {BYTECODE_FIELD, 0, {LOAD(0, 1, -8), EXIT}},                              //
    {BYTECODE_FIELD, 0, {LOAD(0, 1, 8 * QUT_PROBE_FIELD_END), EXIT}},         //
    {BYTECODE_FIELD, 0, {I(0x61, 0, 1, 0, 0), EXIT}},                         // half a field
    {BYTECODE_FIELD, 0, {LOAD(0, 1, 4), EXIT}},                               //
    {BYTECODE_HELPER, 0, {CALL(0), EXIT}},                                    //
    {BYTECODE_HELPER, 0, {CALL(QUT_PROBE_HELPER_END), EXIT}},                 //
    {BYTECODE_ARGUMENT, 1, {MOV(1, 0), CALL(QUT_PROBE_STACK), EXIT}},         // no frames
    {BYTECODE_ARGUMENT, 1, {MOV(1, 128), CALL(QUT_PROBE_STACK), EXIT}},       //
    {BYTECODE_ARGUMENT, 1, {LOAD(1, 1, 0), CALL(QUT_PROBE_STACK), EXIT}},     // not known before
    {BYTECODE_ARGUMENT, 0, {CALL(QUT_PROBE_STACK), EXIT}},                    // an address
    {BYTECODE_HELPER, 0, {CALL(-1), EXIT}},                                   //
    {BYTECODE_HELPER, 1, {MOV(1, 0), CALL(QUT_PROBE_PRINT), EXIT}},           // not inside
    {BYTECODE_ARGUMENT, 1, {MOV(1, 2), CALL(QUT_PROBE_AGGREGATE), EXIT}},     // no such map
    {BYTECODE_ARGUMENT, 1, {MOV(1, -1), CALL(QUT_PROBE_AGGREGATE), EXIT}},    //
    {BYTECODE_ARGUMENT, 1, {MOV(1, 1), CALL(QUT_PROBE_EMIT), EXIT}},          // no such record
    {BYTECODE_ARGUMENT, 1, {MOV(1, 0), CALL(QUT_PROBE_LOOKUP), EXIT}},        // a count has no value
    {BYTECODE_ARGUMENT, 1, {LOAD(1, 1, 0), CALL(QUT_PROBE_AGGREGATE), EXIT}}, // not known before
    {BYTECODE_ARGUMENT, 3, {COPY(1, 10), MOV(2, 257), MOV(3, 0), CALL(QUT_PROBE_READ), EXIT}},
    {BYTECODE_ARGUMENT, 3, {COPY(1, 10), MOV(2, 0), MOV(3, 0), CALL(QUT_PROBE_READ), EXIT}},
    {BYTECODE_STACK, 3, {COPY(1, 10), MOV(2, 8), MOV(3, 0), CALL(QUT_PROBE_READ), EXIT}},
    {BYTECODE_STACK, 4, {COPY(1, 10), I(0x07, 1, 0, 0, -8), MOV(2, 9), MOV(3, 0), CALL(QUT_PROBE_READ), EXIT}},
    {BYTECODE_ALIGNMENT, 4, {COPY(1, 10), I(0x07, 1, 0, 0, -12), MOV(2, 1), MOV(3, 0), CALL(QUT_PROBE_READ), EXIT}},
    {BYTECODE_NUMBER, 3, {MOV(1, 8), MOV(2, 8), MOV(3, 0), CALL(QUT_PROBE_STRING), EXIT}},
    {BYTECODE_NUMBER, 3, {MOV(1, 8), MOV(2, 8), MOV(3, 0), CALL(QUT_PROBE_PATH), EXIT}},
    {BYTECODE_ARGUMENT, 3, {COPY(1, 10), MOV(2, 257), MOV(3, 0), CALL(QUT_PROBE_PATH), EXIT}},
    // More than 32 bits are no constant, whichever half says so.
    {BYTECODE_ARGUMENT, 2, {I(0x18, 1, 0, 0, 1), I(0, 0, 0, 0, 1), CALL(QUT_PROBE_EMIT), EXIT}},
    {BYTECODE_ARGUMENT, 2, {I(0x18, 1, 0, 0, 1), I(0, 0, 0, 0, 0), CALL(QUT_PROBE_EMIT), EXIT}}, // no such record
    {BYTECODE_UNWRITTEN, 4, {COPY(2, 10), I(0x07, 2, 0, 0, -8), MOV(1, 0), MOV(3, 1), CALL(QUT_PROBE_AGGREGATE), EXIT}},
    {BYTECODE_UNSET,
     5,
     {COPY(1, 10), I(0x07, 1, 0, 0, -8), MOV(2, 8), MOV(3, 0), CALL(QUT_PROBE_READ), COPY(0, 1), EXIT}}, // a helper's
};

static void check_refused(size_t i)
{
    const struct refused *one = &refused[i];
    struct image image;
    const size_t size = make(&image, one->code, QUT_PROBE_ENTRY);
    const struct bytecode_fault fault = fault_of(&image, size);
    ck_assert_msg(fault.refusal == one->refusal && fault.instruction == one->at, "%zu: %s at %u", i,
                  bytecode_refusal_text(fault.refusal), fault.instruction);
}

START_TEST(what_may_not_run_is_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(i);
}
END_TEST

static void check_image(struct image *image, size_t size, enum bytecode_refusal refusal)
{
    const struct bytecode_fault fault = fault_of(image, size);
    ck_assert_msg(fault.refusal == refusal, "%s, not %s", bytecode_refusal_text(fault.refusal),
                  bytecode_refusal_text(refusal));
}

START_TEST(images_are_whole)
{
    static const struct qut_probe_instruction code[CODE_MAX] = {MOV(0, 0), EXIT};
    struct image image;
    const size_t size = make(&image, code, QUT_PROBE_ENTRY);
    check_image(&image, size, BYTECODE_OK);
    check_image(&image, size - 1, BYTECODE_SIZES);
    check_image(&image, 8, BYTECODE_SIZES);
#define SPOIL(MEMBER, VALUE, REFUSAL)                                                                                  \
    do {                                                                                                               \
        make(&image, code, QUT_PROBE_ENTRY);                                                                           \
        image.MEMBER = VALUE;                                                                                          \
        check_image(&image, size, REFUSAL);                                                                            \
    } while (0)
    SPOIL(header.magic[3], 0, BYTECODE_HEADER);
    SPOIL(header.version, 2, BYTECODE_HEADER);
    SPOIL(header.total_bytes, 1, BYTECODE_SIZES);
    SPOIL(header.program_count, 0, BYTECODE_SIZES);
    SPOIL(header.program_count, UINT32_MAX, BYTECODE_SIZES);
    SPOIL(header.map_count, 1, BYTECODE_SIZES);
    SPOIL(header.map_count, QUT_PROBE_MAPS_MAX + 1, BYTECODE_SIZES);
    SPOIL(header.record_count, 2, BYTECODE_SIZES);
    SPOIL(header.instruction_count, 3, BYTECODE_SIZES);
    SPOIL(header.instruction_count, UINT32_MAX, BYTECODE_SIZES);
    SPOIL(program.first_instruction, 1, BYTECODE_SIZES);
    SPOIL(program.instruction_count, 1, BYTECODE_SIZES);
    SPOIL(program.instruction_count, 3, BYTECODE_SIZES);
    SPOIL(program.instruction_count, 0, BYTECODE_PROGRAM);
    SPOIL(program.instruction_count, UINT32_MAX, BYTECODE_PROGRAM);
    SPOIL(program.kind, QUT_PROBE_KIND_END, BYTECODE_PROGRAM);
    SPOIL(program.fields, 1u << QUT_PROBE_RETVAL, BYTECODE_FIELDS);
    SPOIL(program.fields, 1u << 31, BYTECODE_FIELDS);
    SPOIL(maps[0].kind, QUT_PROBE_MAP_KIND_END, BYTECODE_MAP);
    SPOIL(maps[0].key_words, QUT_PROBE_KEY_WORDS_MAX + 1, BYTECODE_MAP);
    SPOIL(maps[0].steps, 1, BYTECODE_MAP);
    SPOIL(maps[1].kind, QUT_PROBE_LHIST, BYTECODE_MAP);
    SPOIL(record.words, QUT_PROBE_RECORD_WORDS_MAX + 1, BYTECODE_RECORD);
    SPOIL(record.zero, 1, BYTECODE_RECORD);
#undef SPOIL
    make(&image, code, QUT_PROBE_ENTRY);
    image.maps[0] = (struct qut_probe_map){.kind = QUT_PROBE_LHIST, .low = -5, .step = 3, .steps = 1000};
    check_image(&image, size, BYTECODE_OK);
    image.maps[0].step = INT64_MAX;
    check_image(&image, size, BYTECODE_MAP);
    image.maps[0] = (struct qut_probe_map){.kind = QUT_PROBE_LHIST, .low = INT64_MIN, .step = 3, .steps = 1};
    check_image(&image, size, BYTECODE_MAP);
}
END_TEST

// Every one ends with its answer in r0. arg0 is the least number of 64 bits.
static const struct {
    uint64_t result;
    struct qut_probe_instruction code[CODE_MAX];
} taken[] = {
    {(uint64_t)-7, {MOV(0, -7), EXIT}},
    {UINT32_MAX - 6, {I(0xb4, 0, 0, 0, -7), EXIT}},
    {UINT64_C(0x8899aabbccddeeff), {I(0x18, 0, 0, 0, (int32_t)0xccddeeff), I(0, 0, 0, 0, (int32_t)0x8899aabb), EXIT}},
    {UINT64_C(1) << 63, {LOAD(0, 1, 0), EXIT}},
    {UINT64_C(1) << 63, {LOAD(0, 1, 0), I(0x37, 0, 0, 1, -1), EXIT}}, // / -1
    {0, {LOAD(0, 1, 0), I(0x97, 0, 0, 1, -1), EXIT}},                 // % -1
    {0, {MOV(0, 5), I(0x37, 0, 0, 0, 0), EXIT}},                      // / 0
    {5, {MOV(0, 5), I(0x97, 0, 0, 0, 0), EXIT}},                      // % 0
    {UINT32_MAX, {MOV(0, -1), I(0x94, 0, 0, 0, 0), EXIT}},            // % 0, 32 bits
    {(uint64_t)-3, {MOV(0, -7), I(0x37, 0, 0, 1, 2), EXIT}},          //
    {0x80000000, {I(0xb4, 0, 0, 0, INT32_MIN), I(0x34, 0, 0, 1, -1), EXIT}},
    {(uint64_t)-1, {LOAD(0, 1, 0), I(0xc7, 0, 0, 0, 63), EXIT}}, // >>, signed
    {1, {LOAD(0, 1, 0), I(0x77, 0, 0, 0, 63), EXIT}},            //
    {2, {MOV(0, 1), I(0x67, 0, 0, 0, 65), EXIT}},                // by 65 is by 1
    {0xffffffff, {I(0xb4, 0, 0, 0, INT32_MIN), I(0xc4, 0, 0, 0, 31), EXIT}},
    {(uint64_t)-128, {MOV(2, 0x180), I(0xbf, 0, 2, 8, 0), EXIT}}, // from 8 bits
    {0xffff8000, {MOV(2, 0x18000), I(0xbc, 0, 2, 16, 0), EXIT}},  // from 16, to 32
    {7, {MOV(0, -7), I(0x87, 0, 0, 0, 0), EXIT}},                 //
    {0x1234, {PUT(-8, -1), I(0x6a, 10, 0, -6, 0x1234), I(0x69, 0, 10, -6, 0), EXIT}},
    {UINT64_C(0xffffffff1234ffff), {PUT(-8, -1), I(0x6a, 10, 0, -6, 0x1234), LOAD(0, 10, -8), EXIT}},
    {3, {MOV(2, -1), MOV(0, 3), I(0x26, 2, 0, 1, 7), MOV(0, 4), EXIT}}, // 32 bits, unsigned
    {4, {MOV(2, -1), MOV(0, 3), I(0x66, 2, 0, 1, 7), MOV(0, 4), EXIT}}, // signed
    {9, {MOV(0, 9), I(0x15, 0, 0, 1, 9), MOV(0, 4), EXIT}},
};

static void check_taken(size_t i)
{
    struct image image;
    uint64_t fields[QUT_PROBE_FIELD_END] = {UINT64_C(1) << 63};
    const size_t size = make(&image, taken[i].code, QUT_PROBE_ENTRY);
    const struct bytecode_fault fault = fault_of(&image, size);
    ck_assert_msg(fault.refusal == BYTECODE_OK, "%zu: %s at %u", i, bytecode_refusal_text(fault.refusal),
                  fault.instruction);
    const struct qut_probe_image parts = qut_probe_parts(&image);
    const struct probe_judgement run = probe_judge_runs(&parts, 0, fields), judged = probe_judge(&parts, 0, fields);
    ck_assert_msg(run.result == taken[i].result, "%zu: %llx", i, (unsigned long long)run.result);
    ck_assert_ptr_null(judged.wrong);
    ck_assert_uint_eq(judged.result, taken[i].result);
}

START_TEST(what_may_run_runs)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        check_taken(i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *all = tcase_create("all");
    tcase_add_test(all, what_may_not_run_is_refused);
    tcase_add_test(all, images_are_whole);
    tcase_add_test(all, what_may_run_runs);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
