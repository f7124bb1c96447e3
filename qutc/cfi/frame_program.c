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

// What is known at one location: two words of the machine. The loop below writes an offset and reads the whole in every
// row, which through memory would stall, and by halves, as compilers like to keep them, would cost a tenth of the loop.
struct point {
    uint64_t cfa_low; // how, reg, reg2, shift; offset_bytes in the upper half
    uint64_t rest;    // the registers' id; the CFA's add_bytes in the upper half
};

static inline uint32_t registers_of(struct point point)
{
    return (uint32_t)point.rest;
}

static inline struct point with_registers(struct point point, uint32_t registers)
{
    point.rest = (point.rest & ~(uint64_t)UINT32_MAX) | registers;
    return point;
}

static inline struct qut_cfa cfa_of(struct point point)
{
    struct qut_cfa cfa;
    const uint32_t add_bytes = (uint32_t)(point.rest >> 32);
    memcpy(&cfa, &point.cfa_low, 8);
    memcpy(&cfa.add_bytes, &add_bytes, 4);
    return cfa;
}

static inline struct point with_cfa(struct point point, const struct qut_cfa *cfa)
{
    uint32_t add_bytes;
    memcpy(&point.cfa_low, cfa, 8);
    memcpy(&add_bytes, &cfa->add_bytes, 4);
    point.rest = (uint64_t)add_bytes << 32 | registers_of(point);
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
    struct qut_rule state = runner->registers.rules[registers_of(point)];
    if (state.kind == QUT_RULE_FRAME)
        state.cfa = cfa_of(point);
    struct qut_rule rule = cfi_state_rule(&state, runner->arch);
    return cfi_rule_set_intern(runner->rules, &rule);
}

static inline uint32_t rule_step(struct cfi_program_runner *runner, struct point point)
{
    const uint32_t registers = registers_of(point);
    if (point.rest >> 32) // *(reg + offset) + k, or a PLT's: rare
        return make_rule(runner, point);
    uint64_t hash = (point.cfa_low + ((uint64_t)registers << 7)) * 0x9e3779b97f4a7c15u;
    struct cfi_rule_step *step = &runner->rule_steps[hash >> (64 - RULE_STEP_BITS)];
    if (step->cfa_low == point.cfa_low && step->registers == registers + 1)
        return step->rule_id;
    uint32_t rule_id = make_rule(runner, point);
    if (rule_id != CFI_RULE_NO_MEMORY)
        *step = (struct cfi_rule_step){point.cfa_low, registers + 1, rule_id};
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
    return registers_of(point) + 1 > STATE_DEPTH + 1;
}

static inline struct point malformed(struct point point)
{
    return with_registers(point, BAD_PROGRAM);
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
    return with_registers(now, STATE_DEPTH);
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

static struct point apply_any_cfa(const struct run *run, struct point now, uint8_t op, struct base_cursor *c)
{
    struct qut_cfa cfa = cfa_of(now);
    bool understood = cfi_state_apply_cfa(&cfa, run->runner->arch, run->cie, op, c);
    return understood && !c->failed && !c->overlong ? with_cfa(now, &cfa) : malformed(now);
}

// DW_CFA_def_cfa_offset with a small offset: two of three instructions. False where it is none.
static inline bool set_small_offset(struct point *now, uint8_t op, const uint8_t *operand, const uint8_t *end)
{
    if (op != CFA_DEF_CFA_OFFSET || (uint8_t)now->cfa_low != QUT_CFA_REG || operand >= end || *operand >= 0x80)
        return false;
    now->cfa_low = (uint32_t)now->cfa_low | (uint64_t)*operand << 32;
    return true;
}

static inline struct point apply_registers(const struct run *run, struct point now, const uint8_t *instruction,
                                           enum cfi_op_shape shape, struct base_cursor *c)
{
    cfi_skip_operands(c, shape);
    if (c->failed)
        return malformed(now);
    struct base_bytes bytes = {instruction, (size_t)(c->at - instruction)};
    return with_registers(now, register_step(run->runner, run->cie, registers_of(now), bytes));
}

// The row in force from pc_rel on. Only the FDE's first one can meet what came before.
static inline bool put_row(const struct run *run, struct point now, uint64_t pc_rel, struct cfi_row_writer *out)
{
    const uint32_t rule_id = rule_step(run->runner, now);
    if (rule_id == CFI_RULE_NO_MEMORY)
        return false;
    if (pc_rel == run->fde->start_rel)
        cfi_row_writer_put(out, (uint32_t)pc_rel, rule_id);
    else
        cfi_row_writer_put_above(out, (uint32_t)pc_rel, rule_id);
    return true;
}

// Runs the program to its end. False where memory lacks.
static inline bool run_program(struct run *run, struct point now, struct cfi_row_writer *out)
{
    const uint64_t end_rel = run->fde->end_rel;
    uint64_t row_rel = run->fde->start_rel, row_count = 0;
    struct base_cursor c = base_cursor((struct base_bytes){run->fde->program, run->fde->program_size});
    // After a refused instruction nothing that follows can be trusted, a remembered state neither.
    bool goes_on = is_sound(now);
    while (c.at < c.end && goes_on) {
        const uint8_t *instruction = c.at;
        uint8_t op = *c.at++;
        enum cfi_op_shape shape = cfi_op_shape(op);
        if (shape == CFI_OP_ADVANCE) {
            uint64_t next_rel;
            if ((op & 0xc0) == CFA_ADVANCE_LOC) {
                next_rel = advanced(run, row_rel, op & 0x3f);
            } else {
                struct base_cursor slow = c; // a copy: the loop's own stays in registers
                next_rel = read_far_location(run, row_rel, op, &slow);
                c = slow;
                if (c.failed) {
                    now = malformed(now);
                    break;
                }
            }
            if (next_rel != row_rel) {
                if (!put_row(run, now, row_rel, out))
                    return false;
                row_count++;
                row_rel = next_rel;
                if (row_rel == end_rel)
                    break;
            }
            // What moves on is mostly followed by this.
            if (c.at < c.end && set_small_offset(&now, *c.at, c.at + 1, c.end))
                c.at += 2;
        } else if (shape == CFI_OP_CFA) {
            if (set_small_offset(&now, op, c.at, c.end)) {
                c.at++;
                continue;
            }
            struct base_cursor slow = c;
            now = apply_any_cfa(run, now, op, &slow);
            c = slow;
            goes_on = is_sound(now);
        } else if (shape >= CFI_OP_BARE) {
            now = apply_registers(run, now, instruction, shape, &c);
            goes_on = is_sound(now);
        } else if (shape == CFI_OP_SPECIAL) {
            now = run_special(run, now, op);
            goes_on = is_sound(now);
        } // else CFI_OP_NOP: padding of the record
    }
    if (registers_of(now) == CFI_RULE_NO_MEMORY)
        return false;
    if (row_rel < end_rel) {
        if (!put_row(run, now, row_rel, out))
            return false;
        row_count++;
    }
    cfi_row_writer_put_above(out, (uint32_t)end_rel, CFI_RULE_HOLE_ID);
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
    struct point now = with_cfa((struct point){.rest = cie->initial_registers}, &cie->initial_cfa);
    struct cfi_row_writer out = cfi_row_writer(rows);
    if (!run_program(&run, now, &out))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    cfi_row_writer_done(out, rows);
    return 0;
}
