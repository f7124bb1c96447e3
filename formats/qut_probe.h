// SPDX-License-Identifier: Apache-2.0
// Programs of probes, version 1: what a script becomes, and what is verified before any of it runs. Pure data;
// specification: formats/qut_probe.md.
//
//   header | programs | maps | records | instructions
//
// The parts stand one behind the other, without gaps. Everything is little-endian. Instructions are those of RFC 9669,
// of which only a part is allowed: all jumps go forwards, and nothing but the program's own stack is written.
#ifndef QUT_FORMATS_QUT_PROBE_H
#define QUT_FORMATS_QUT_PROBE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define QUT_PROBE_MAGIC "QUTProb\x01"

enum {
    QUT_PROBE_VERSION = 1,
    QUT_PROBE_STACK_BYTES = 512,
    QUT_PROBE_REGISTERS = 11,
    QUT_PROBE_FRAME_REGISTER = 10,     // one behind the stack's end; nobody writes it
    QUT_PROBE_INSTRUCTIONS_MAX = 1024, // of one program
    QUT_PROBE_PROGRAMS_MAX = 32,
    QUT_PROBE_MAPS_MAX = 32,
    QUT_PROBE_RECORDS_MAX = 64,
    QUT_PROBE_KEY_WORDS_MAX = 32,
    QUT_PROBE_RECORD_WORDS_MAX = 64,
    QUT_PROBE_READ_BYTES_MAX = 256, // by one call of a helper
    QUT_PROBE_STACK_FRAMES_MAX = 127,
    QUT_PROBE_STACK_EXTRA = 64, // in the process's trace: of the sample that has a stack's frames, its number
};

enum qut_probe_kind { // when a program runs; append only
    QUT_PROBE_ENTRY = 0,
    QUT_PROBE_RETURN = 1,
    QUT_PROBE_BEGIN = 2, // these run in the tool
    QUT_PROBE_TIMER = 3,
    QUT_PROBE_END = 4,
    QUT_PROBE_UNWIND = 5, // in the process again: a call was left, and has not returned
    // Marks: such programs do not run. The function that is entered throws an exception, or begins a handler.
    QUT_PROBE_THROWS = 6,
    QUT_PROBE_CATCHES = 7,
    QUT_PROBE_PLACE = 8, // a place within a function
    QUT_PROBE_KIND_END,
};

enum qut_probe_field { // what r1 points to when a program begins: words of 64 bits, to be read only; append only
    QUT_PROBE_ARG0 = 0,
    QUT_PROBE_ARG5 = 5,
    QUT_PROBE_RETVAL = 6,
    QUT_PROBE_DURATION = 7, // ns
    QUT_PROBE_TIME = 8,     // ns
    QUT_PROBE_TID = 9,
    QUT_PROBE_PID = 10,
    QUT_PROBE_ERRNO = 11,  // the thread's, as it is then
    QUT_PROBE_RANDOM = 12, // 0 to 2^32 - 1, another one in each run
    QUT_PROBE_FIELD_END,
};

// Those that a program of this kind finds filled in, as bits.
static inline uint32_t qut_probe_fields_of(enum qut_probe_kind kind)
{
    const uint32_t everywhere = UINT32_C(1) << QUT_PROBE_TIME | UINT32_C(1) << QUT_PROBE_PID;
    const uint32_t inside =
        everywhere | UINT32_C(1) << QUT_PROBE_TID | UINT32_C(1) << QUT_PROBE_ERRNO | UINT32_C(1) << QUT_PROBE_RANDOM;
    if (kind == QUT_PROBE_ENTRY || kind == QUT_PROBE_PLACE)
        return inside | ((UINT32_C(2) << QUT_PROBE_ARG5) - 1);
    if (kind == QUT_PROBE_RETURN)
        return inside | UINT32_C(1) << QUT_PROBE_RETVAL | UINT32_C(1) << QUT_PROBE_DURATION;
    if (kind == QUT_PROBE_UNWIND)
        return inside | UINT32_C(1) << QUT_PROBE_DURATION;
    return everywhere;
}

enum qut_probe_helper { // arguments are r1, r2, r3; what is given comes in r0; append only
    // Reads r2 (constant) bytes at address r3 into the stack at r1. What cannot be read is 0. Gives 1 if all was read,
    // else 0.
    QUT_PROBE_READ = 1,
    // The same up to a byte 0; behind it all is 0, and the last byte always. Gives how long the text is.
    QUT_PROBE_STRING = 2,
    // Adds value r3 to map r1 (constant), under the key at r2 on the stack.
    QUT_PROBE_AGGREGATE = 3,
    // The value that map r1 (constant, of kind QUT_PROBE_VALUE) has under the key at r2; 0: none.
    QUT_PROBE_LOOKUP = 4,
    // Gives record r1 (constant) out, its words at r2 on the stack.
    QUT_PROBE_EMIT = 5,
    // In the tool only: prints map r1 (constant); empties it.
    QUT_PROBE_PRINT = 6,
    QUT_PROBE_CLEAR = 7,
    // Who has called the function, at most r1 (constant) frames: a number that is the same for the same stack, and not
    // 0. The frames go into the process's trace with it, once. 0: no stack could be taken.
    QUT_PROBE_STACK = 8,
    // As QUT_PROBE_STRING, of what descriptor r3 is: the path of a file, or the kernel's word for another thing. 0: it
    // is not open, or nobody may ask.
    QUT_PROBE_PATH = 9,
    QUT_PROBE_HELPER_END,
};

// Whether it fills r2 bytes of the stack at r1, in whole words.
static inline bool qut_probe_fills(uint32_t helper)
{
    return helper == QUT_PROBE_READ || helper == QUT_PROBE_STRING || helper == QUT_PROBE_PATH;
}

static inline bool qut_probe_is_mark(enum qut_probe_kind kind)
{
    return kind == QUT_PROBE_THROWS || kind == QUT_PROBE_CATCHES;
}

static inline bool qut_probe_is_inside(enum qut_probe_kind kind)
{
    return kind == QUT_PROBE_ENTRY || kind == QUT_PROBE_RETURN || kind == QUT_PROBE_UNWIND || kind == QUT_PROBE_PLACE ||
           qut_probe_is_mark(kind);
}

// Whether a program of this kind may call it.
static inline bool qut_probe_has_helper(enum qut_probe_kind kind, uint32_t helper)
{
    if (qut_probe_fills(helper) || helper == QUT_PROBE_STACK)
        return qut_probe_is_inside(kind);
    if (helper == QUT_PROBE_PRINT || helper == QUT_PROBE_CLEAR)
        return !qut_probe_is_inside(kind);
    return helper >= QUT_PROBE_AGGREGATE && helper <= QUT_PROBE_EMIT;
}

enum qut_probe_map_kind { // append only
    QUT_PROBE_COUNT = 0,
    QUT_PROBE_SUM = 1,
    QUT_PROBE_MIN = 2,
    QUT_PROBE_MAX = 3,
    QUT_PROBE_AVG = 4,
    QUT_PROBE_HIST = 5,  // by powers of two
    QUT_PROBE_LHIST = 6, // by steps of the same size
    QUT_PROBE_VALUE = 7, // what was put there last
    QUT_PROBE_MAP_KIND_END,
};

enum {
    QUT_PROBE_HIST_CELLS = 66,        // below 0, 0, [1], [2,3], ... [2^63, 2^64)
    QUT_PROBE_LHIST_STEPS_MAX = 1000, // and a cell below and one above them
};

struct qut_probe_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t total_bytes; // with this
    uint32_t program_count, map_count, record_count, instruction_count;
};
static_assert(sizeof(struct qut_probe_header) == 32, "shared");

struct qut_probe_program {
    uint32_t first_instruction, instruction_count; // programs follow each other without gaps
    uint32_t kind;                                 // enum qut_probe_kind
    uint32_t fields;                               // bits of those that it reads; the others need not be filled in
};
static_assert(sizeof(struct qut_probe_program) == 16, "shared");

struct qut_probe_map {
    uint32_t kind;      // enum qut_probe_map_kind
    uint32_t key_words; // 0: it has one value, without a key
    // Of QUT_PROBE_LHIST: steps from low on, each of `step`; all 0 elsewhere.
    int64_t low, step;
    uint64_t steps;
};
static_assert(sizeof(struct qut_probe_map) == 32, "shared");

struct qut_probe_record {
    uint32_t words, zero;
};
static_assert(sizeof(struct qut_probe_record) == 8, "shared");

struct qut_probe_instruction { // RFC 9669, section 3
    uint8_t opcode;
    uint8_t registers; // destination, source << 4
    int16_t offset;
    int32_t immediate;
};
static_assert(sizeof(struct qut_probe_instruction) == 8, "shared");

enum { // of an opcode
    QUT_PROBE_CLASS_MASK = 0x07,
    QUT_PROBE_CLASS_LD = 0x00,
    QUT_PROBE_CLASS_LDX = 0x01,
    QUT_PROBE_CLASS_ST = 0x02,
    QUT_PROBE_CLASS_STX = 0x03,
    QUT_PROBE_CLASS_ALU = 0x04, // 32 bits
    QUT_PROBE_CLASS_JMP = 0x05,
    QUT_PROBE_CLASS_JMP32 = 0x06,
    QUT_PROBE_CLASS_ALU64 = 0x07,
    QUT_PROBE_SOURCE_X = 0x08, // the other operand is a register
    QUT_PROBE_CODE_MASK = 0xf0,
    QUT_PROBE_MODE_MASK = 0xe0,
    QUT_PROBE_MODE_MEM = 0x60,
    QUT_PROBE_SIZE_MASK = 0x18,
    QUT_PROBE_SIZE_W = 0x00,
    QUT_PROBE_SIZE_H = 0x08,
    QUT_PROBE_SIZE_B = 0x10,
    QUT_PROBE_SIZE_DW = 0x18,
};

enum { // codes of ALU and ALU64
    QUT_PROBE_ADD = 0x00,
    QUT_PROBE_SUB = 0x10,
    QUT_PROBE_MUL = 0x20,
    QUT_PROBE_DIV = 0x30, // offset 1: signed
    QUT_PROBE_OR = 0x40,
    QUT_PROBE_AND = 0x50,
    QUT_PROBE_LSH = 0x60,
    QUT_PROBE_RSH = 0x70,
    QUT_PROBE_NEG = 0x80,
    QUT_PROBE_MOD = 0x90, // offset 1: signed
    QUT_PROBE_XOR = 0xa0,
    QUT_PROBE_MOV = 0xb0, // with a register, offset 8, 16, 32: sign-extended from so many bits
    QUT_PROBE_ARSH = 0xc0,
};

enum { // codes of JMP and JMP32; the first, the last two in JMP only
    QUT_PROBE_JA = 0x00,
    QUT_PROBE_JEQ = 0x10,
    QUT_PROBE_JGT = 0x20,
    QUT_PROBE_JGE = 0x30,
    QUT_PROBE_JSET = 0x40,
    QUT_PROBE_JNE = 0x50,
    QUT_PROBE_JSGT = 0x60,
    QUT_PROBE_JSGE = 0x70,
    QUT_PROBE_CALL = 0x80,
    QUT_PROBE_EXIT = 0x90,
    QUT_PROBE_JLT = 0xa0,
    QUT_PROBE_JLE = 0xb0,
    QUT_PROBE_JSLT = 0xc0,
    QUT_PROBE_JSLE = 0xd0,
};

enum {
    QUT_PROBE_OP_WIDE = QUT_PROBE_CLASS_LD | QUT_PROBE_SIZE_DW, // a number of 64 bits, in two instructions
    QUT_PROBE_OP_CALL = QUT_PROBE_CLASS_JMP | QUT_PROBE_CALL,
    QUT_PROBE_OP_EXIT = QUT_PROBE_CLASS_JMP | QUT_PROBE_EXIT,
    QUT_PROBE_OP_JA = QUT_PROBE_CLASS_JMP | QUT_PROBE_JA,
};

static inline unsigned qut_probe_destination(const struct qut_probe_instruction *instruction)
{
    return instruction->registers & 0x0f;
}

static inline unsigned qut_probe_source(const struct qut_probe_instruction *instruction)
{
    return instruction->registers >> 4;
}

// How many bytes a load or store moves.
static inline unsigned qut_probe_access_bytes(uint8_t opcode)
{
    switch (opcode & QUT_PROBE_SIZE_MASK) {
    case QUT_PROBE_SIZE_B: return 1;
    case QUT_PROBE_SIZE_H: return 2;
    case QUT_PROBE_SIZE_W: return 4;
    default: return 8;
    }
}

// What an image has, as pointers: of one that bytecode_verify took.
struct qut_probe_image {
    const struct qut_probe_header *header;
    const struct qut_probe_program *programs;
    const struct qut_probe_map *maps;
    const struct qut_probe_record *records;
    const struct qut_probe_instruction *instructions;
};

static inline struct qut_probe_image qut_probe_parts(const void *bytes)
{
    const struct qut_probe_header *header = bytes;
    struct qut_probe_image image = {.header = header};
    image.programs = (const void *)(header + 1);
    image.maps = (const void *)(image.programs + header->program_count);
    image.records = (const void *)(image.maps + header->map_count);
    image.instructions = (const void *)(image.records + header->record_count);
    return image;
}

// Of a histogram; 0: the map is none.
static inline uint32_t qut_probe_cells(const struct qut_probe_map *map)
{
    switch (map->kind) {
    case QUT_PROBE_HIST: return QUT_PROBE_HIST_CELLS;
    case QUT_PROBE_LHIST: return (uint32_t)map->steps + 2;
    default: return 0;
    }
}

// What a map of this kind keeps for one key, in words of 64 bits. Behind a histogram's cells stands the sum of what was
// added.
static inline uint32_t qut_probe_value_words(const struct qut_probe_map *map)
{
    return qut_probe_cells(map) + 1;
}

#endif
