// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/program.h"

#include <stdlib.h>

#include "qutc/cfi/dwarf_constants.h"
#include "qutc/cfi/state.h"

enum { MEMO_BITS = 15, MEMO_ENTRIES = 1 << MEMO_BITS, MEMO_BYTES_MAX = 16 };
enum { BAD_PROGRAM_STATE = 1 }; // interned right after the hole

// One remembered step of the automaton.
struct qutc_transition {
    uint64_t bytes[2]; // the instructions, zero-extended
    uint32_t from;  // state id
    uint32_t to;
    uint32_t cie; // index + 1; 0: empty entry
    uint32_t bytes_count;
};

// How far the scan may go without understanding an instruction.
enum op_shape {
    SHAPE_STOP = 0,  // moves the location, or needs the runner: ends a group
    SHAPE_BARE = 1,  // no operand
    SHAPE_ULEB = 2,  // one LEB128 operand
    SHAPE_ULEB2 = 3, // two of them
    SHAPE_BLOCK = 4, // a counted block
    SHAPE_ULEB_BLOCK = 5,
};

static const uint8_t shapes[256] = {
    [CFA_NOP] = SHAPE_BARE,
    [CFA_OFFSET_EXTENDED] = SHAPE_ULEB2,
    [CFA_RESTORE_EXTENDED] = SHAPE_ULEB,
    [CFA_UNDEFINED] = SHAPE_ULEB,
    [CFA_SAME_VALUE] = SHAPE_ULEB,
    [CFA_REGISTER] = SHAPE_ULEB2,
    [CFA_DEF_CFA] = SHAPE_ULEB2,
    [CFA_DEF_CFA_REGISTER] = SHAPE_ULEB,
    [CFA_DEF_CFA_OFFSET] = SHAPE_ULEB,
    [CFA_DEF_CFA_EXPRESSION] = SHAPE_BLOCK,
    [CFA_EXPRESSION] = SHAPE_ULEB_BLOCK,
    [CFA_OFFSET_EXTENDED_SF] = SHAPE_ULEB2,
    [CFA_DEF_CFA_SF] = SHAPE_ULEB2,
    [CFA_DEF_CFA_OFFSET_SF] = SHAPE_ULEB,
    [CFA_VAL_OFFSET] = SHAPE_ULEB2,
    [CFA_VAL_OFFSET_SF] = SHAPE_ULEB2,
    [CFA_VAL_EXPRESSION] = SHAPE_ULEB_BLOCK,
    [CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = SHAPE_BARE,
    [CFA_AARCH64_NEGATE_RA_STATE] = SHAPE_BARE,
    [CFA_GNU_ARGS_SIZE] = SHAPE_ULEB,
    [CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = SHAPE_ULEB2,
    [CFA_OFFSET ... CFA_OFFSET + 0x3f] = SHAPE_ULEB,
    [CFA_RESTORE ... CFA_RESTORE + 0x3f] = SHAPE_BARE,
};

static inline void skip_leb(struct qutc_cursor *c)
{
    while (qutc_read_u8(c) & 0x80)
        continue;
}

// Moves past the instructions that change only the state; stops before one that does not, or at the end.
static inline void skip_group(struct qutc_cursor *c)
{
    while (c->at < c->end) {
        enum op_shape shape = (enum op_shape)shapes[*c->at];
        if (shape == SHAPE_STOP)
            return;
        c->at++;
        if (shape == SHAPE_BARE)
            continue;
        if (shape == SHAPE_BLOCK) {
            qutc_cursor_skip(c, qutc_read_uleb(c));
            continue;
        }
        skip_leb(c);
        if (shape == SHAPE_ULEB2)
            skip_leb(c);
        else if (shape == SHAPE_ULEB_BLOCK)
            qutc_cursor_skip(c, qutc_read_uleb(c));
    }
}

static uint32_t refused_state(struct qutc_program_runner *runner, enum qut_refusal reason)
{
    struct qut_rule refused = qutc_rule_refused(reason);
    return qutc_rule_set_intern(&runner->states, &refused);
}

int qutc_program_runner_init(struct qutc_program_runner *runner, const struct qut_arch *arch, struct qutc_bytes section,
                             struct qutc_rule_set *rules, struct qutc_error *error)
{
    *runner = (struct qutc_program_runner){
        .arch = arch, .rules = rules, .readable_end = section.data + section.size};
    if (qutc_rule_set_init(&runner->states, error) != 0)
        return -1;
    runner->memo = calloc(MEMO_ENTRIES, sizeof *runner->memo);
    if (runner->memo && refused_state(runner, QUT_REFUSED_BAD_PROGRAM) == BAD_PROGRAM_STATE)
        return 0;
    qutc_program_runner_free(runner);
    return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "transitions");
}

void qutc_program_runner_free(struct qutc_program_runner *runner)
{
    qutc_rule_set_free(&runner->states);
    free(runner->rule_of_state);
    free(runner->memo);
    *runner = (struct qutc_program_runner){0};
}

// Interns the table's form of a state. QUTC_RULE_NO_MEMORY where memory lacks.
static uint32_t make_rule(struct qutc_program_runner *runner, uint32_t state)
{
    if (state >= runner->rule_of_state_count) {
        uint32_t count = runner->states.capacity;
        uint32_t *map = realloc(runner->rule_of_state, count * sizeof *map);
        if (!map)
            return QUTC_RULE_NO_MEMORY;
        memset(map + runner->rule_of_state_count, 0, (count - runner->rule_of_state_count) * sizeof *map);
        runner->rule_of_state = map;
        runner->rule_of_state_count = count;
    }
    struct qut_rule rule = qutc_state_rule(&runner->states.rules[state], runner->arch);
    uint32_t id = qutc_rule_set_intern(runner->rules, &rule);
    if (id != QUTC_RULE_NO_MEMORY)
        runner->rule_of_state[state] = id + 1;
    return id;
}

static inline uint32_t rule_of(struct qutc_program_runner *runner, uint32_t state)
{
    if (state < runner->rule_of_state_count && runner->rule_of_state[state])
        return runner->rule_of_state[state] - 1;
    return make_rule(runner, state);
}

// The state after the instructions of one group, by interpretation.
static uint32_t interpret(struct qutc_program_runner *runner, const struct qutc_cie *cie, uint32_t from,
                          struct qutc_bytes group)
{
    struct qut_rule state = runner->states.rules[from];
    if (state.kind != QUT_RULE_FRAME)
        return from;
    struct qutc_cursor c = qutc_cursor(group);
    const struct qut_rule *initial = cie->has_initial_state ? &runner->states.rules[cie->initial_state] : NULL;
    if (initial && initial->kind != QUT_RULE_FRAME)
        return cie->initial_state;
    if (!qutc_state_apply(&state, initial, runner->arch, cie, &c))
        return BAD_PROGRAM_STATE;
    return qutc_rule_set_intern(&runner->states, &state);
}

// Up to 16 instruction bytes as two numbers. Whole words are read where the section goes on that far.
static inline void load_group(uint64_t bytes[2], struct qutc_bytes group, const uint8_t *readable_end)
{
    if (readable_end - group.data >= MEMO_BYTES_MAX) {
        memcpy(bytes, group.data, MEMO_BYTES_MAX);
        if (group.size < 8) {
            bytes[0] &= ((uint64_t)1 << (8 * group.size)) - 1;
            bytes[1] = 0;
        } else if (group.size < MEMO_BYTES_MAX) {
            bytes[1] &= ((uint64_t)1 << (8 * (group.size - 8))) - 1;
        }
        return;
    }
    bytes[0] = bytes[1] = 0;
    for (size_t i = 0; i < group.size; i++)
        bytes[i / 8] |= (uint64_t)group.data[i] << (8 * (i % 8));
}

// The same, remembered.
static inline uint32_t transition(struct qutc_program_runner *runner, const struct qutc_cie *cie, uint32_t from,
                                  struct qutc_bytes group)
{
    if (group.size > MEMO_BYTES_MAX)
        return interpret(runner, cie, from, group);
    uint64_t bytes[2];
    load_group(bytes, group, runner->readable_end);
    uint64_t hash = (bytes[0] ^ bytes[1] * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ (uint64_t)from << 8 ^ cie->class) * 0x9e3779b97f4a7c15u;
    struct qutc_transition *memo = &runner->memo[hash >> (64 - MEMO_BITS)];
    if (memo->bytes[0] == bytes[0] && memo->bytes[1] == bytes[1] && memo->from == from &&
        memo->cie == cie->class + 1 && memo->bytes_count == group.size)
        return memo->to;
    uint32_t to = interpret(runner, cie, from, group);
    if (to != QUTC_RULE_NO_MEMORY)
        *memo = (struct qutc_transition){
            .bytes = {bytes[0], bytes[1]}, .from = from, .to = to, .cie = cie->class + 1, .bytes_count = (uint32_t)group.size};
    return to;
}

// A linker leaves one CIE per object file or personality; those that mean the same share their transitions.
static uint32_t class_of(struct qutc_program_runner *runner, const struct qutc_cie *cie)
{
    for (uint32_t i = 0; i < runner->class_count; i++) {
        const struct qutc_cie *other = &runner->classes[i];
        if (other->initial_state == cie->initial_state && other->data_align == cie->data_align &&
            other->ra_column == cie->ra_column)
            return i;
    }
    if (runner->class_count < QUTC_CIE_CLASSES_MAX) {
        runner->classes[runner->class_count] = *cie;
        return runner->class_count++;
    }
    return QUTC_CIE_CLASSES_MAX + runner->unshared_classes++;
}

static int run_cie(struct qutc_program_runner *runner, struct qutc_cie *cie, struct qutc_error *error)
{
    struct qut_rule start = qutc_state_start(runner->arch, cie);
    uint32_t from = qutc_rule_set_intern(&runner->states, &start);
    uint32_t to = from;
    if (from != QUTC_RULE_NO_MEMORY)
        to = interpret(runner, cie, from, cie->program);
    if (to == QUTC_RULE_NO_MEMORY)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "states");
    cie->initial_state = to;
    cie->has_initial_state = true;
    cie->class = class_of(runner, cie);
    return 0;
}

// One run of one FDE's program.
struct run {
    uint32_t state;
    uint64_t loc_rel;
    uint32_t depth;
    uint32_t remembered[QUTC_REMEMBER_DEPTH_MAX];
};

// The instruction at the cursor that moves the location or the stack of states. False where the program ends here:
// it is malformed, and run->state says so.
static bool run_special(struct qutc_program_runner *runner, struct run *run, const struct qutc_cie *cie,
                        const struct qutc_fde *fde, uint64_t text_start, struct qutc_cursor *c)
{
    uint64_t delta;
    uint8_t op = qutc_read_u8(c);
    switch (op) {
    case CFA_ADVANCE_LOC1: delta = qutc_read_u8(c); break;
    case CFA_ADVANCE_LOC2: delta = qutc_read_u16(c); break;
    case CFA_ADVANCE_LOC4: delta = qutc_read_u32(c); break;
    case CFA_MIPS_ADVANCE_LOC8: delta = qutc_read_u64(c); break;
    case CFA_SET_LOC: {
        uint64_t target = qutc_read_uint(c, cie->address_size) - text_start;
        if (cie->pointer_encoding != PE_ABSPTR || target < run->loc_rel || target > fde->end_rel || c->failed) {
            run->state = BAD_PROGRAM_STATE;
            return false;
        }
        run->loc_rel = target;
        return true;
    }
    case CFA_REMEMBER_STATE:
        if (run->depth == QUTC_REMEMBER_DEPTH_MAX) {
            run->state = refused_state(runner, QUT_REFUSED_STATE_DEPTH);
            return false;
        }
        run->remembered[run->depth++] = run->state;
        return true;
    case CFA_RESTORE_STATE:
        if (run->depth == 0) {
            run->state = refused_state(runner, QUT_REFUSED_STATE_DEPTH);
            return false;
        }
        run->state = run->remembered[--run->depth];
        return true;
    default:
        if ((op & 0xc0) != CFA_ADVANCE_LOC) {
            run->state = BAD_PROGRAM_STATE;
            return false;
        }
        delta = op & 0x3f;
    }
    if (c->failed) {
        run->state = BAD_PROGRAM_STATE;
        return false;
    }
    uint64_t distance;
    if (__builtin_mul_overflow(delta, cie->code_align, &distance) || distance > fde->end_rel - run->loc_rel)
        distance = fde->end_rel - run->loc_rel; // rows past the FDE's end describe nothing
    run->loc_rel += distance;
    return true;
}

static inline int put_row(struct qutc_program_runner *runner, struct qutc_row_list *rows, uint64_t pc_rel,
                          uint32_t state, struct qutc_error *error)
{
    uint32_t rule_id = state == QUTC_RULE_NO_MEMORY ? state : rule_of(runner, state);
    if (rule_id == QUTC_RULE_NO_MEMORY)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "rules");
    qutc_row_list_put(rows, (uint32_t)pc_rel, rule_id);
    return 0;
}

int qutc_program_run(struct qutc_program_runner *runner, struct qutc_cie *cie, const struct qutc_fde *fde, uint64_t text_start, struct qutc_row_list *rows,
                     struct qutc_error *error)
{
    if (!cie->has_initial_state && run_cie(runner, cie, error) != 0)
        return -1;
    // Every row costs at least one byte of program.
    if (qutc_row_list_reserve(rows, (size_t)fde->program_size + 2, error) != 0)
        return -1;
    struct run run;
    run.state = cie->initial_state;
    run.loc_rel = fde->start_rel;
    run.depth = 0;
    struct qutc_cursor c = qutc_cursor((struct qutc_bytes){fde->program, fde->program_size});
    while (qutc_cursor_left(&c) && run.loc_rel < fde->end_rel) {
        const uint8_t *group = c.at;
        skip_group(&c);
        if (c.at != group)
            run.state =
                transition(runner, cie, run.state, (struct qutc_bytes){group, (size_t)(c.at - group)});
        if (c.failed)
            run.state = BAD_PROGRAM_STATE;
        // After a malformed instruction nothing that follows can be trusted, a remembered state neither.
        bool goes_on = run.state != BAD_PROGRAM_STATE && qutc_cursor_left(&c);
        uint64_t row_rel = run.loc_rel;
        uint32_t row_state = run.state;
        if (goes_on && !run_special(runner, &run, cie, fde, text_start, &c)) {
            row_state = run.state; // the malformed instruction belongs to this row
            goes_on = false;
        }
        if (put_row(runner, rows, row_rel, row_state, error) != 0)
            return -1;
        runner->row_count += run.loc_rel != row_rel;
        if (!goes_on)
            break;
    }
    if (run.loc_rel < fde->end_rel) {
        runner->row_count++;
        if (put_row(runner, rows, run.loc_rel, run.state, error) != 0)
            return -1;
    }
    qutc_row_list_put(rows, fde->end_rel, QUTC_RULE_HOLE_ID);
    return 0;
}
