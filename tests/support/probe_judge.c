// SPDX-License-Identifier: Apache-2.0
#include "tests/support/probe_judge.h"

#include <string.h>

enum { BYTES = QUT_PROBE_STACK_BYTES, REGISTERS = QUT_PROBE_REGISTERS };

// ---- what both hosts do

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = mix(hash, bytes[i]);
    return hash;
}

// What is "read" from an address: some of it, and then nothing.
static uint64_t fill(uint8_t *to, uint64_t size, uint64_t address, bool is_text)
{
    const size_t room = (size_t)(size + 7) / 8 * 8;
    memset(to, 0, room);
    if (address % 3 == 0)
        return 0;
    for (size_t i = 0; i + (is_text ? 1 : 0) < size; i++) {
        to[i] = (uint8_t)mix(address, i);
        if (is_text && to[i] < 24) {
            memset(to + i, 0, room - i);
            return i;
        }
    }
    return is_text ? size - 1 : 1;
}

static uint32_t words_of(const struct qut_probe_image *image, uint64_t helper, uint64_t number)
{
    if (helper == QUT_PROBE_EMIT)
        return image->records[number].words;
    return helper == QUT_PROBE_AGGREGATE || helper == QUT_PROBE_LOOKUP ? image->maps[number].key_words : 0;
}

// ---- by others

struct logging_host {
    struct bytecode_host host;
    const struct qut_probe_image *image;
    struct probe_judgement *judgement;
};

static uint64_t log_call(struct bytecode_host *host, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    struct logging_host *log = (struct logging_host *)(void *)host;
    struct probe_judgement *judgement = log->judgement;
    uint64_t hash = mix(judgement->calls_hash, helper), result;
    judgement->calls++;
    if (helper == QUT_PROBE_READ || helper == QUT_PROBE_STRING || helper == QUT_PROBE_PATH) {
        result = fill((uint8_t *)(uintptr_t)a, b, c, helper != QUT_PROBE_READ);
        hash = mix(mix(hash, b), c);
    } else {
        const size_t bytes = 8u * words_of(log->image, helper, a); // none of a stack's
        hash = mix(hash, a);
        hash = bytes ? mix_bytes(hash, (const uint8_t *)(uintptr_t)b, bytes) : hash;
        hash = helper == QUT_PROBE_AGGREGATE ? mix(hash, c) : hash;
        result = hash >> 7;
    }
    judgement->calls_hash = hash;
    return result;
}

struct probe_judgement probe_judge_runs_by(const struct qut_probe_image *image, const uint64_t *fields,
                                           probe_judge_run *run, void *context)
{
    struct probe_judgement judgement = {.wrong = NULL};
    struct logging_host host = {{log_call}, image, &judgement};
    judgement.result = run(context, fields, &host.host);
    return judgement;
}

static uint64_t interpret(void *context, const uint64_t *fields, struct bytecode_host *host)
{
    const struct qut_probe_instruction *const *code = context;
    return bytecode_run(*code, fields, host);
}

struct probe_judgement probe_judge_runs(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields)
{
    const struct qut_probe_instruction *code = image->instructions + image->programs[program].first_instruction;
    return probe_judge_runs_by(image, fields, interpret, &code);
}

// ---- by hand

enum tag { NOTHING, NUMBER, OF_FIELDS, OF_STACK };

struct value {
    enum tag tag;
    uint64_t bits; // of an address: from the fields' begin, or from the stack's end
};

struct machine {
    const struct qut_probe_image *image;
    const struct qut_probe_program *program;
    const struct qut_probe_instruction *code;
    const uint64_t *fields;
    struct value r[REGISTERS];
    struct probe_judgement judgement;
};

static bool wrong(struct machine *m, const char *what)
{
    if (!m->judgement.wrong)
        m->judgement.wrong = what;
    return false;
}

static bool number_in(struct machine *m, unsigned index, uint64_t *bits)
{
    *bits = 0;
    if (index >= REGISTERS)
        return wrong(m, "no such register");
    if (m->r[index].tag == NOTHING)
        return wrong(m, "reads a register that is not set");
    if (m->r[index].tag != NUMBER)
        return wrong(m, "an address is taken for a number");
    *bits = m->r[index].bits;
    return true;
}

static bool put_in(struct machine *m, unsigned index, enum tag tag, uint64_t bits)
{
    if (index >= REGISTERS - 1)
        return wrong(m, "writes a register that it may not");
    m->r[index] = (struct value){tag, bits};
    return true;
}

// The stack's bytes at an address; NULL: they are not of the stack.
static uint8_t *stack_at(struct machine *m, const struct value *address, int64_t offset, uint64_t bytes, bool **written)
{
    const uint64_t at = address->bits + (uint64_t)offset + BYTES;
    if (address->tag != OF_STACK || at > BYTES || bytes > BYTES - at) {
        wrong(m, "outside of the stack");
        return NULL;
    }
    *written = m->judgement.is_written + at;
    return m->judgement.stack + at;
}

static bool are_written(struct machine *m, const bool *written, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (!written[i])
            return wrong(m, "reads stack that was not written");
    return true;
}

static uint64_t operate(unsigned code, uint64_t a, uint64_t b, bool is_64, int offset)
{
    const unsigned bits = is_64 ? 64 : 32;
    const uint64_t mask = is_64 ? UINT64_MAX : UINT32_MAX;
    const int64_t sa = is_64 ? (int64_t)a : (int32_t)(uint32_t)a, sb = is_64 ? (int64_t)b : (int32_t)(uint32_t)b;
    const bool is_opposite = sb == -1; // of the least number there is none
    a &= mask;
    b &= mask;
    switch (code) {
    case 0x0: return (a + b) & mask;
    case 0x1: return (a - b) & mask;
    case 0x2: return a * b & mask;
    case 0x3: return b == 0 ? 0 : !offset ? a / b : is_opposite ? (0 - a) & mask : (uint64_t)(sa / sb) & mask;
    case 0x4: return a | b;
    case 0x5: return a & b;
    case 0x6: return (a << b % bits) & mask;
    case 0x7: return a >> b % bits;
    case 0x8: return (0 - a) & mask;
    case 0x9: return b == 0 ? a : !offset ? a % b : is_opposite ? 0 : (uint64_t)(sa % sb) & mask;
    case 0xa: return a ^ b;
    case 0xb: {
        const unsigned kept = offset == 8 || offset == 16 || offset == 32 ? (unsigned)offset : bits;
        const uint64_t low = kept == 64 ? b : b & ((UINT64_C(1) << kept) - 1);
        return (kept < bits && low >> (kept - 1) ? low | ~UINT64_C(0) << kept : low) & mask;
    }
    default: return (uint64_t)(sa >> b % bits) & mask;
    }
}

static bool operation(struct machine *m, const struct qut_probe_instruction *i)
{
    const unsigned code = i->opcode >> 4, to = i->registers & 15, from = i->registers >> 4;
    const bool is_64 = (i->opcode & 7) == 7, is_register = i->opcode & 8;
    uint64_t a = 0, b = (uint64_t)(int64_t)i->immediate;
    if (code > 0xc)
        return wrong(m, "no such operation");
    if (is_64 && code == 0xb && is_register && i->offset == 0 && from < REGISTERS && m->r[from].tag != NOTHING)
        return put_in(m, to, m->r[from].tag, m->r[from].bits);
    if (is_register && code != 0x8 && !number_in(m, from, &b))
        return false;
    if (to < REGISTERS && is_64 && (code == 0 || code == 1) && m->r[to].tag >= OF_FIELDS)
        return put_in(m, to, m->r[to].tag, code == 0 ? m->r[to].bits + b : m->r[to].bits - b);
    if (code != 0xb && !number_in(m, to, &a))
        return false;
    return put_in(m, to, NUMBER, operate(code, a, b, is_64, i->offset));
}

static bool access(struct machine *m, const struct qut_probe_instruction *i)
{
    static const unsigned sizes[] = {4, 2, 1, 8};
    const unsigned bytes = sizes[i->opcode >> 3 & 3], to = i->registers & 15, from = i->registers >> 4;
    const bool is_load = (i->opcode & 7) == 1, is_register = (i->opcode & 7) == 3;
    const unsigned base = is_load ? from : to;
    uint64_t value = (uint64_t)(int64_t)i->immediate;
    bool *written;
    if (i->opcode >> 5 != 3 || base >= REGISTERS)
        return wrong(m, "no such access");
    if (is_load && m->r[base].tag == OF_FIELDS) {
        const uint64_t at = m->r[base].bits + (uint64_t)(int64_t)i->offset;
        if (bytes != 8 || at % 8 || at / 8 >= QUT_PROBE_FIELD_END || !(m->program->fields >> at / 8 & 1))
            return wrong(m, "reads a field that is not its");
        return put_in(m, to, NUMBER, m->fields[at / 8]);
    }
    uint8_t *place = stack_at(m, &m->r[base], i->offset, bytes, &written);
    if (!place)
        return false;
    if (is_load) {
        value = 0;
        memcpy(&value, place, bytes);
        return are_written(m, written, bytes) && put_in(m, to, NUMBER, value);
    }
    if (is_register && !number_in(m, from, &value))
        return false;
    memcpy(place, &value, bytes);
    memset(written, true, bytes);
    return true;
}

static bool helper_call(struct machine *m, uint32_t helper)
{
    struct probe_judgement *j = &m->judgement;
    const struct qut_probe_image *image = m->image;
    const bool is_inside = qut_probe_is_inside((enum qut_probe_kind)m->program->kind);
    uint64_t a, b, c, result;
    uint64_t hash = mix(j->calls_hash, helper);
    bool *written;
    j->calls++;
    if (helper == QUT_PROBE_READ || helper == QUT_PROBE_STRING || helper == QUT_PROBE_PATH) {
        if (!is_inside || !number_in(m, 2, &b) || !number_in(m, 3, &c) || b == 0 || b > 256)
            return wrong(m, "reads the program's memory as it may not");
        uint8_t *place = stack_at(m, &m->r[1], 0, (b + 7) / 8 * 8, &written);
        if (!place)
            return false;
        result = fill(place, b, c, helper != QUT_PROBE_READ);
        memset(written, true, (size_t)(b + 7) / 8 * 8);
        hash = mix(mix(hash, b), c);
    } else if (helper == QUT_PROBE_STACK) {
        if (!is_inside || !number_in(m, 1, &a) || a == 0 || a > 127)
            return wrong(m, "takes a stack as it may not");
        hash = mix(hash, a);
        result = hash >> 7;
    } else {
        const bool is_print = helper == QUT_PROBE_PRINT || helper == QUT_PROBE_CLEAR;
        const uint32_t most = helper == QUT_PROBE_EMIT ? image->header->record_count : image->header->map_count;
        if (helper == 0 || helper > QUT_PROBE_CLEAR || (is_print && is_inside) || !number_in(m, 1, &a) || a >= most)
            return wrong(m, "calls what is not there");
        if (helper == QUT_PROBE_LOOKUP && image->maps[a].kind != QUT_PROBE_VALUE)
            return wrong(m, "looks up what has no values");
        const size_t bytes = 8u * words_of(image, helper, a);
        hash = mix(hash, a);
        if (bytes) {
            const uint8_t *place = stack_at(m, &m->r[2], 0, bytes, &written);
            if (!place || !are_written(m, written, bytes))
                return false;
            hash = mix_bytes(hash, place, bytes);
        }
        if (helper == QUT_PROBE_AGGREGATE && !number_in(m, 3, &c))
            return false;
        hash = helper == QUT_PROBE_AGGREGATE ? mix(hash, c) : hash;
        result = hash >> 7;
    }
    j->calls_hash = hash;
    m->r[0] = (struct value){NUMBER, result};
    for (unsigned i = 1; i <= 5; i++)
        m->r[i].tag = NOTHING;
    return true;
}

static bool holds(unsigned code, uint64_t a, uint64_t b, bool is_64)
{
    const int64_t sa = is_64 ? (int64_t)a : (int32_t)(uint32_t)a, sb = is_64 ? (int64_t)b : (int32_t)(uint32_t)b;
    a = is_64 ? a : (uint32_t)a;
    b = is_64 ? b : (uint32_t)b;
    switch (code) {
    case 0x1: return a == b;
    case 0x2: return a > b;
    case 0x3: return a >= b;
    case 0x4: return a & b;
    case 0x5: return a != b;
    case 0x6: return sa > sb;
    case 0x7: return sa >= sb;
    case 0xa: return a < b;
    case 0xb: return a <= b;
    case 0xc: return sa < sb;
    default: return sa <= sb;
    }
}

static int64_t jump_by(struct machine *m, uint32_t at, int16_t offset)
{
    const int64_t to = (int64_t)at + 1 + offset;
    return to < 0 ? wrong(m, "leaves its code") - 1 : to;
}

// Where it goes on; -1: it ends, or is wrong.
static int64_t step(struct machine *m, uint32_t at)
{
    const int64_t next = (int64_t)at + 1;
    const struct qut_probe_instruction *i = &m->code[at];
    const unsigned kind = i->opcode & 7, code = i->opcode >> 4;
    uint64_t a, b = (uint64_t)(int64_t)i->immediate;
    if (kind == 4 || kind == 7)
        return operation(m, i) ? next : -1;
    if (kind >= 1 && kind <= 3)
        return access(m, i) ? next : -1;
    if (kind == 0) {
        if (i->opcode != 0x18 || at + 1 >= m->program->instruction_count)
            return wrong(m, "no such instruction") - 1;
        b = (uint32_t)i->immediate | (uint64_t)(uint32_t)i[1].immediate << 32;
        return put_in(m, i->registers & 15, NUMBER, b) ? next + 1 : -1;
    }
    if (i->opcode == 0x85)
        return helper_call(m, (uint32_t)i->immediate) ? next : -1;
    if (i->opcode == 0x95) {
        number_in(m, 0, &m->judgement.result);
        return -1;
    }
    if (i->opcode == 0x05)
        return jump_by(m, at, i->offset);
    if (code == 0 || code == 8 || code == 9 || code > 0xd)
        return wrong(m, "no such jump") - 1;
    if (!number_in(m, i->registers & 15, &a) || (i->opcode & 8 && !number_in(m, i->registers >> 4, &b)))
        return -1;
    return jump_by(m, at, holds(code, a, b, kind == 5) ? i->offset : 0);
}

struct probe_judgement probe_judge(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields)
{
    struct machine m = {.image = image, .program = &image->programs[program], .fields = fields};
    const uint32_t count = m.program->instruction_count;
    m.code = image->instructions + m.program->first_instruction;
    m.r[1].tag = OF_FIELDS;
    m.r[REGISTERS - 1].tag = OF_STACK;
    int64_t at = 0;
    while (at >= 0 && !m.judgement.wrong) {
        m.judgement.at = (uint32_t)at;
        if (at >= (int64_t)count)
            wrong(&m, "leaves its code");
        else if (++m.judgement.steps > count)
            wrong(&m, "runs more instructions than it has");
        else
            at = step(&m, (uint32_t)at);
    }
    return m.judgement;
}
