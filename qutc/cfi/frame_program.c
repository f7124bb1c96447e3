// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_program.h"

#include <stdlib.h>

#include "base/encoded_pointer_inline.h"
#include "qutc/cfi/dwarf_constants.h"
#include "qutc/cfi/op_shape_inline.h"
#include "qutc/cfi/state.h"

enum {
    REGISTER_STEP_BITS = 11,
    RULE_STEP_BITS = 11,
    STEP_BYTES_MAX = 3,
    // Refused states, interned right after the hole: a program ends in them.
    BAD_PROGRAM = 1,
    STATE_DEPTH = 2,
};

// One remembered step of the automaton.
struct cfi_register_step {
    uint64_t key; // registers id, class of the CIE, instruction bytes; 0: empty entry
    uint32_t to;
};

// The rule of a row.
struct cfi_rule_step {
    uint64_t cfa_low;
    uint32_t registers; // id + 1; 0: empty entry
    uint32_t rule_id;
};
static_assert(sizeof(struct cfi_rule_step) == 16, "the hot part of them fits a first-level cache");

// What is known at one location. The CFA is kept in registers of the machine, as the two words that it is made of: the
// loop below writes its offset and reads it whole in every row, which through memory would stall.
struct point {
    uint64_t cfa_low; // how, reg, reg2, shift; offset_bytes in the upper half
    uint32_t cfa_high;
    uint32_t registers; // id
};

static inline struct qut_cfa cfa_of(struct point point)
{
    struct qut_cfa cfa;
    memcpy(&cfa, &point.cfa_low, 8);
    memcpy(&cfa.add_bytes, &point.cfa_high, 4);
    return cfa;
}

static inline struct point with_cfa(struct point point, const struct qut_cfa *cfa)
{
    memcpy(&point.cfa_low, cfa, 8);
    memcpy(&point.cfa_high, &cfa->add_bytes, 4);
    return point;
}

static uint32_t refused(struct cfi_program_runner *runner, enum qut_refusal reason)
{
    struct qut_rule rule = cfi_rule_refused(reason);
    return cfi_rule_set_intern(&runner->registers, &rule);
}

int cfi_program_runner_init(struct cfi_program_runner *runner, const struct arch *arch, struct cfi_rule_set *rules,
                            struct base_error *error)
{
    *runner = (struct cfi_program_runner){.arch = arch, .rules = rules};
    if (cfi_rule_set_init(&runner->registers, error) != 0)
        return -1;
    runner->register_steps = calloc((size_t)1 << REGISTER_STEP_BITS, sizeof *runner->register_steps);
    runner->rule_steps = calloc((size_t)1 << RULE_STEP_BITS, sizeof *runner->rule_steps);
    if (runner->register_steps && runner->rule_steps && refused(runner, QUT_REFUSED_BAD_PROGRAM) == BAD_PROGRAM &&
        refused(runner, QUT_REFUSED_STATE_DEPTH) == STATE_DEPTH)
        return 0;
    cfi_program_runner_free(runner);
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "frame programs");
}

void cfi_program_runner_free(struct cfi_program_runner *runner)
{
    cfi_rule_set_free(&runner->registers);
    free(runner->register_steps);
    free(runner->rule_steps);
    *runner = (struct cfi_program_runner){0};
}

// The registers after one instruction, by interpretation.
static uint32_t interpret(struct cfi_program_runner *runner, const struct cfi_cie *cie, uint32_t from,
                          struct base_bytes instruction)
{
    struct qut_rule state = runner->registers.rules[from];
    struct base_cursor c = base_cursor(instruction);
    if (!cfi_state_apply(&state, &runner->registers.rules[cie->initial_registers], runner->arch, cie, &c))
        return BAD_PROGRAM;
    return cfi_rule_set_intern(&runner->registers, &state);
}

// The same, remembered. The key is exact: an instruction's bytes say by themselves where they end.
static inline uint32_t register_step(struct cfi_program_runner *runner, const struct cfi_cie *cie, uint32_t from,
                                     struct base_bytes instruction)
{
    if (instruction.size > STEP_BYTES_MAX || cie->class == CFI_CIE_CLASS_NONE)
        return interpret(runner, cie, from, instruction);
    uint32_t bytes = instruction.data[0];
    if (instruction.size > 1)
        bytes |= (uint32_t)instruction.data[1] << 8;
    if (instruction.size > 2)
        bytes |= (uint32_t)instruction.data[2] << 16;
    uint64_t key = (uint64_t)from << 32 | cie->class << 24 | bytes;
    struct cfi_register_step *step = &runner->register_steps[key * 0x9e3779b97f4a7c15u >> (64 - REGISTER_STEP_BITS)];
    if (step->key == key)
        return step->to;
    uint32_t to = interpret(runner, cie, from, instruction);
    if (to != CFI_RULE_NO_MEMORY)
        *step = (struct cfi_register_step){key, to};
    return to;
}

static uint32_t make_rule(struct cfi_program_runner *runner, struct point point)
{
    struct qut_rule state = runner->registers.rules[point.registers];
    if (state.kind == QUT_RULE_FRAME)
        state.cfa = cfa_of(point);
    struct qut_rule rule = cfi_state_rule(&state, runner->arch);
    return cfi_rule_set_intern(runner->rules, &rule);
}

static inline uint32_t rule_step(struct cfi_program_runner *runner, struct point point)
{
    if (point.cfa_high) // *(reg + offset) + k, or a PLT's: rare
        return make_rule(runner, point);
    uint64_t hash = (point.cfa_low + ((uint64_t)point.registers << 7)) * 0x9e3779b97f4a7c15u;
    struct cfi_rule_step *step = &runner->rule_steps[hash >> (64 - RULE_STEP_BITS)];
    if (step->cfa_low == point.cfa_low && step->registers == point.registers + 1)
        return step->rule_id;
    uint32_t rule_id = make_rule(runner, point);
    if (rule_id != CFI_RULE_NO_MEMORY)
        *step = (struct cfi_rule_step){point.cfa_low, point.registers + 1, rule_id};
    return rule_id;
}

// A linker leaves one CIE per object file or personality; those that mean the same share their steps.
static uint32_t class_of(struct cfi_program_runner *runner, const struct cfi_cie *cie)
{
    for (uint32_t i = 0; i < runner->class_count; i++) {
        const struct cfi_cie *other = &runner->classes[i];
        if (other->initial_registers == cie->initial_registers && other->data_align == cie->data_align &&
            other->ra_column == cie->ra_column)
            return i;
    }
    if (runner->class_count == CFI_CIE_CLASSES_MAX)
        return CFI_CIE_CLASS_NONE;
    runner->classes[runner->class_count] = *cie;
    return runner->class_count++;
}

static int run_cie(struct cfi_program_runner *runner, struct cfi_cie *cie, struct base_error *error)
{
    struct qut_rule state = cfi_state_start(runner->arch, cie);
    struct base_cursor c = base_cursor(cie->program);
    // A column that is sp or a tracked register as well would get one rule for two questions. No producer does that.
    bool ambiguous = cie->ra_column == runner->arch->sp_reg || arch_slot(runner->arch, cie->ra_column) >= 0;
    cie->initial_registers = BAD_PROGRAM;
    if (!ambiguous && cfi_state_apply(&state, NULL, runner->arch, cie, &c)) {
        cie->initial_cfa = state.cfa;
        state.cfa = (struct qut_cfa){0};
        cie->initial_registers = cfi_rule_set_intern(&runner->registers, &state);
    }
    if (cie->initial_registers == CFI_RULE_NO_MEMORY)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "frame programs");
    cie->has_initial_state = true;
    cie->class = class_of(runner, cie);
    return 0;
}

// One run of one FDE's program.
struct run {
    struct cfi_program_runner *runner;
    const struct cfi_cie *cie;
    const struct cfi_fde *fde;
    uint64_t text_start;
    uint32_t depth;
    struct point remembered[CFI_REMEMBER_DEPTH_MAX];
};

// Neither refused nor out of memory: the ids up to STATE_DEPTH, and the last one.
static inline bool is_sound(struct point point)
{
    return point.registers + 1 > STATE_DEPTH + 1;
}

static inline struct point malformed(struct point point)
{
    point.registers = BAD_PROGRAM;
    return point;
}

// DW_CFA_set_loc: the new location, or `from` where it is no sane one.
static uint64_t read_set_loc(const struct run *run, uint64_t from, struct base_cursor *c)
{
    uint64_t target = base_read_uint(c, run->cie->address_size) - run->text_start;
    bool sane = run->cie->pointer_encoding == PE_ABSPTR && target >= from && target <= run->fde->end_rel;
    if (!sane)
        base_cursor_fail(c);
    return sane ? target : from;
}

// Remembers or restores. Anything else here is an unknown instruction.
static struct point run_special(struct run *run, struct point now, uint8_t op)
{
    if (op == CFA_REMEMBER_STATE && run->depth < CFI_REMEMBER_DEPTH_MAX) {
        run->remembered[run->depth++] = now;
        return now;
    }
    if (op == CFA_RESTORE_STATE && run->depth)
        return run->remembered[--run->depth];
    if (op != CFA_REMEMBER_STATE && op != CFA_RESTORE_STATE)
        return malformed(now);
    now.registers = STATE_DEPTH;
    return now;
}

// from + delta * code_align, at most the FDE's end: rows past it describe nothing.
static inline uint64_t advanced(const struct run *run, uint64_t from, uint64_t delta)
{
    uint64_t distance, room = run->fde->end_rel - from;
    if (__builtin_mul_overflow(delta, run->cie->code_align, &distance) || distance > room)
        distance = room;
    return from + distance;
}

static uint64_t read_far_location(const struct run *run, uint64_t from, uint8_t op, struct base_cursor *c)
{
    switch (op) {
    case CFA_SET_LOC: return read_set_loc(run, from, c);
    case CFA_ADVANCE_LOC1: return advanced(run, from, base_read_u8(c));
    case CFA_ADVANCE_LOC2: return advanced(run, from, base_read_u16(c));
    case CFA_ADVANCE_LOC4: return advanced(run, from, base_read_u32(c));
    default: return advanced(run, from, base_read_u64(c)); // CFA_MIPS_ADVANCE_LOC8
    }
}

static inline uint64_t read_location(const struct run *run, uint64_t from, uint8_t op, struct base_cursor *c)
{
    if ((op & 0xc0) == CFA_ADVANCE_LOC)
        return advanced(run, from, op & 0x3f);
    struct base_cursor slow = *c; // a copy: the loop's own stays in registers
    uint64_t location = read_far_location(run, from, op, &slow);
    *c = slow;
    return location;
}

static struct point apply_any_cfa(const struct run *run, struct point now, uint8_t op, struct base_cursor *c)
{
    struct qut_cfa cfa = cfa_of(now);
    bool understood = cfi_state_apply_cfa(&cfa, run->runner->arch, run->cie, op, c);
    return understood && !c->failed && !c->overlong ? with_cfa(now, &cfa) : malformed(now);
}

static inline struct point apply_cfa(const struct run *run, struct point now, uint8_t op, struct base_cursor *c)
{
    // Two of three instructions are this one, with a small offset.
    if (op == CFA_DEF_CFA_OFFSET && (uint8_t)now.cfa_low == QUT_CFA_REG && c->at < c->end && *c->at < 0x80) {
        now.cfa_low = (uint32_t)now.cfa_low | (uint64_t)*c->at++ << 32;
        return now;
    }
    struct base_cursor slow = *c;
    now = apply_any_cfa(run, now, op, &slow);
    *c = slow;
    return now;
}

static inline struct point apply_registers(const struct run *run, struct point now, const uint8_t *instruction,
                                           enum cfi_op_shape shape, struct base_cursor *c)
{
    cfi_skip_operands(c, shape);
    if (c->failed)
        return malformed(now);
    struct base_bytes bytes = {instruction, (size_t)(c->at - instruction)};
    now.registers = register_step(run->runner, run->cie, now.registers, bytes);
    return now;
}

// Runs the program to its end. False where memory lacks.
static inline bool run_program(struct run *run, struct point now, struct cfi_row_writer *out)
{
    const uint64_t end_rel = run->fde->end_rel;
    uint64_t row_rel = run->fde->start_rel, row_count = 0;
    struct base_cursor c = base_cursor((struct base_bytes){run->fde->program, run->fde->program_size});
    // After a refused instruction nothing that follows can be trusted, a remembered state neither.
    while (c.at < c.end && is_sound(now)) {
        const uint8_t *instruction = c.at;
        uint8_t op = *c.at++;
        enum cfi_op_shape shape = cfi_op_shape(op);
        if (shape == CFI_OP_ADVANCE) {
            uint64_t next_rel = read_location(run, row_rel, op, &c);
            if (c.failed) {
                now = malformed(now);
            } else if (next_rel != row_rel) {
                uint32_t rule_id = rule_step(run->runner, now);
                if (rule_id == CFI_RULE_NO_MEMORY)
                    return false;
                cfi_row_writer_put(out, (uint32_t)row_rel, rule_id);
                row_count++;
                row_rel = next_rel;
                if (row_rel == end_rel)
                    break;
            }
        } else if (shape == CFI_OP_CFA) {
            now = apply_cfa(run, now, op, &c);
        } else if (shape >= CFI_OP_BARE) {
            now = apply_registers(run, now, instruction, shape, &c);
        } else if (shape == CFI_OP_SPECIAL) {
            now = run_special(run, now, op);
        } // else CFI_OP_NOP: padding of the record
    }
    if (now.registers == CFI_RULE_NO_MEMORY)
        return false;
    if (row_rel < end_rel) {
        uint32_t rule_id = rule_step(run->runner, now);
        if (rule_id == CFI_RULE_NO_MEMORY)
            return false;
        cfi_row_writer_put(out, (uint32_t)row_rel, rule_id);
        row_count++;
    }
    cfi_row_writer_put(out, (uint32_t)end_rel, CFI_RULE_HOLE_ID);
    run->runner->row_count += row_count;
    return true;
}

int cfi_program_run(struct cfi_program_runner *runner, struct cfi_cie *cie, const struct cfi_fde *fde,
                    uint64_t text_start, struct cfi_row_list *rows, struct base_error *error)
{
    if (!cie->has_initial_state && run_cie(runner, cie, error) != 0)
        return -1;
    // Every row costs at least one byte of program.
    if (cfi_row_list_reserve(rows, (size_t)fde->program_size + 2, error) != 0)
        return -1;
    struct run run;
    run.runner = runner;
    run.cie = cie;
    run.fde = fde;
    run.text_start = text_start;
    run.depth = 0;
    struct point now = with_cfa((struct point){.registers = cie->initial_registers}, &cie->initial_cfa);
    struct cfi_row_writer out = cfi_row_writer(rows);
    if (!run_program(&run, now, &out))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    cfi_row_writer_done(out, rows);
    return 0;
}
