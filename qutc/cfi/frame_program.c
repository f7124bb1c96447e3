// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_program.h"

#include <limits.h>

#include "base/encoded_pointer_inline.h"
#include "qutc/cfi/dwarf_constants.h"
#include "qutc/cfi/state.h"

int cfi_program_runner_init(struct cfi_program_runner *runner, const struct arch *arch, struct cfi_rule_set *rules,
                            struct base_error *error)
{
    runner->row_count = 0;
    return cfi_forms_init(&runner->forms, arch, rules, error);
}

void cfi_program_runner_free(struct cfi_program_runner *runner)
{
    cfi_forms_free(&runner->forms);
}

// One run of one FDE's program.
struct run {
    struct cfi_forms *forms;
    const struct cfi_cie *cie;
    const struct cfi_fde *fde;
    uint64_t text_start;
    uint32_t depth;
    struct cfi_point remembered[CFI_REMEMBER_DEPTH_MAX];
};

// How far it is: a value, so that the loop can keep it in registers.
struct progress {
    struct base_cursor c;
    struct cfi_point now;
    uint64_t row_rel; // from where on that holds
    struct cfi_row_writer out;
    uint64_t row_count;
};

// ---- usual instructions

// Nearly all instructions are these, in their short forms; four of five are the first two.
enum {
    PAIR = CFA_ADVANCE_LOC | CFA_DEF_CFA_OFFSET << 8, // an advance, and a near offset of the CFA from there on
    PAIR_BITS = 0xffc0,
    PAIR_OPERAND_AT = 16,
    PAIR_BYTES = 3,
    SAVE = CFA_OFFSET, // of a register
    SAVE_BITS = 0x80c0,
    SAVE_BYTES = 2,
    DELTA_BITS = 0x3f,
    LEB_BITS = 0x7f,
};

// How many bytes an advance takes, and how far it goes; 0 bytes: it is none of these.
static inline unsigned peek_advance(uint32_t ahead, uint64_t *delta)
{
    if ((ahead & ~(uint32_t)DELTA_BITS & UINT8_MAX) == CFA_ADVANCE_LOC) {
        *delta = ahead & DELTA_BITS;
        return 1;
    }
    const bool has_two = (ahead & UINT8_MAX) == CFA_ADVANCE_LOC2;
    *delta = ahead >> 8 & (has_two ? UINT16_MAX : UINT8_MAX);
    return has_two ? 3 : (ahead & UINT8_MAX) == CFA_ADVANCE_LOC1 ? 2 : 0;
}

// The same of an offset of the CFA.
static inline unsigned peek_offset(uint32_t ahead, int32_t *offset_bytes)
{
    const bool has_two = ahead >> 8 & (LEB_BITS + 1);
    const uint32_t high = has_two ? (ahead >> 16 & LEB_BITS) << 7 : 0;
    *offset_bytes = (int32_t)((ahead >> 8 & LEB_BITS) | high);
    if ((ahead & UINT8_MAX) != CFA_DEF_CFA_OFFSET || (has_two && ahead >> 16 & (LEB_BITS + 1)))
        return 0;
    return has_two ? 3 : 2;
}

// The same of any other that leads from a form to a form, with operands of a byte each.
static inline unsigned peek_step(uint32_t ahead)
{
    enum { ONE_MORE = 0x80 << 8, TWO_MORE = ONE_MORE | 0x80 << 16 };
    if ((ahead & CFA_RESTORE) == CFA_RESTORE)
        return 1;
    switch (ahead & UINT8_MAX) {
    case CFA_AARCH64_NEGATE_RA_STATE: return 1;
    case CFA_DEF_CFA_REGISTER:
    case CFA_GNU_ARGS_SIZE:
    case CFA_RESTORE_EXTENDED:
    case CFA_SAME_VALUE:
    case CFA_UNDEFINED: return ahead & ONE_MORE ? 0 : 2;
    case CFA_DEF_CFA:
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
    case CFA_REGISTER:
    case CFA_VAL_OFFSET: return ahead & TWO_MORE ? 0 : 3;
    default: return 0;
    }
}

static inline bool is_state(uint8_t op)
{
    return op == CFA_REMEMBER_STATE || op == CFA_RESTORE_STATE;
}

static inline struct cfi_point remember_or_restore(struct run *run, struct cfi_point now, uint8_t op)
{
    if (op == CFA_REMEMBER_STATE && run->depth < CFI_REMEMBER_DEPTH_MAX)
        run->remembered[run->depth++] = now;
    else if (op == CFA_RESTORE_STATE && run->depth)
        now = run->remembered[--run->depth];
    else
        now.form = CFI_FORM_STATE_DEPTH;
    return now;
}

// Goes on as long as the instructions are usual and the rules of their rows are known: in registers, where a call is
// for what is new.
static inline void run_usual(struct run *run, struct progress *progress)
{
    struct cfi_forms *forms = run->forms;
    const uint32_t *near_ids = forms->near.items->ids;
    const unsigned word_log2 = forms->word_log2;
    const uint32_t far_bits = ~((uint32_t)CFI_NEAR_NONE << word_log2) & UINT8_MAX;
    const uint32_t pair_bits = PAIR_BITS | far_bits << PAIR_OPERAND_AT;
    const uint64_t align = run->cie->code_align <= UINT32_MAX ? run->cie->code_align : 0; // 0: not here
    const uint64_t end_rel = run->fde->end_rel;
    struct base_cursor c = progress->c;
    struct cfi_row_writer out = progress->out;
    struct cfi_point now = progress->now;
    uint32_t words = cfi_point_near_words(forms, now);
    uint64_t room = end_rel - progress->row_rel, moves = 0;
    while (base_cursor_left(&c)) {
        const uint32_t ahead = base_peek_u32(&c);
        if ((ahead & pair_bits) == PAIR) {
            const uint64_t distance = (ahead & DELTA_BITS) * align;
            const uint32_t rule_id = near_ids[(size_t)now.form * (CFI_NEAR_NONE + 1) + words];
            if (rule_id && distance - 1 < room - 1) { // nor nothing
                cfi_row_writer_put(&out, (uint32_t)(end_rel - room), rule_id);
                room -= distance;
                now.offset_bytes = ahead >> PAIR_OPERAND_AT & LEB_BITS;
                words = (uint32_t)now.offset_bytes >> word_log2;
                moves++;
                c.at += PAIR_BYTES;
                continue;
            }
        } else if ((ahead & SAVE_BITS) == SAVE) {
            now.form = cfi_form_step(forms, run->cie, now.form, ahead & UINT16_MAX, SAVE_BYTES);
            c.at += SAVE_BYTES;
            near_ids = forms->near.items->ids;
            if (!cfi_form_is_sound(now.form))
                break;
            continue;
        } else if ((ahead & UINT8_MAX) == CFA_NOP) { // padding of the record
            c.at += ahead ? (unsigned)__builtin_ctz(ahead) / CHAR_BIT : sizeof ahead;
            continue;
        }
        if (is_state(ahead & UINT8_MAX)) {
            now = remember_or_restore(run, now, ahead & UINT8_MAX);
            words = cfi_point_near_words(forms, now);
            c.at++;
            if (!cfi_form_is_sound(now.form))
                break;
            continue;
        }
        int32_t offset_bytes;
        unsigned size = peek_offset(ahead, &offset_bytes);
        if (size && cfi_form_has_offset(forms, now.form)) {
            now.offset_bytes = offset_bytes;
            words = cfi_point_near_words(forms, now);
            c.at += size;
            continue;
        }
        uint64_t delta;
        size = peek_advance(ahead, &delta);
        if (size) {
            const uint64_t distance = delta * align;
            uint32_t rule_id = near_ids[(size_t)now.form * (CFI_NEAR_NONE + 1) + words];
            if (!rule_id)
                rule_id = cfi_point_far_rule(forms, now);
            if (!rule_id || size > base_cursor_left(&c) || distance - 1 >= room - 1)
                break;
            cfi_row_writer_put(&out, (uint32_t)(end_rel - room), rule_id);
            room -= distance;
            moves++;
            c.at += size;
            continue;
        }
        size = peek_step(ahead);
        if (!size)
            break;
        const bool is_cfa = (ahead & UINT8_MAX) == CFA_DEF_CFA; // its offset is none of the form's
        const uint32_t bytes = ahead & UINT32_MAX >> (32 - CHAR_BIT * (is_cfa ? 2 : size));
        if ((ahead & UINT8_MAX) == CFA_DEF_CFA_REGISTER && !cfi_form_has_offset(forms, now.form))
            break; // its offset would be lost
        now.form = cfi_form_step(forms, run->cie, now.form, bytes, size);
        if (is_cfa) {
            now.offset_bytes = ahead >> 16 & LEB_BITS;
            words = cfi_point_near_words(forms, now);
        }
        c.at += size;
        near_ids = forms->near.items->ids;
        if (!cfi_form_is_sound(now.form))
            break;
    }
    progress->c = c;
    progress->out = out;
    progress->now = now;
    progress->row_rel = end_rel - room;
    progress->row_count += moves;
}

// ---- any instructions

// DW_CFA_set_loc: how far that is.
static uint64_t read_set_loc(const struct run *run, struct base_cursor *c, uint64_t row_rel)
{
    uint64_t target = base_read_uint(c, run->cie->address_size) - run->text_start;
    bool sane = run->cie->pointer_encoding == PE_ABSPTR && target >= row_rel && target <= run->fde->end_rel;
    if (!sane)
        base_cursor_fail(c);
    return sane ? target - row_rel : 0;
}

// How far an advance goes: at most to the FDE's end, rows past it describe nothing.
static uint64_t read_distance(const struct run *run, struct base_cursor *c, uint64_t row_rel)
{
    const uint8_t op = base_read_u8(c);
    uint64_t delta, distance, room = run->fde->end_rel - row_rel;
    switch (op) {
    case CFA_SET_LOC: return read_set_loc(run, c, row_rel);
    case CFA_ADVANCE_LOC1: delta = base_read_u8(c); break;
    case CFA_ADVANCE_LOC2: delta = base_read_u16(c); break;
    case CFA_ADVANCE_LOC4: delta = base_read_u32(c); break;
    case CFA_MIPS_ADVANCE_LOC8: delta = base_read_u64(c); break;
    default: delta = op & DELTA_BITS; break; // CFA_ADVANCE_LOC
    }
    if (__builtin_mul_overflow(delta, run->cie->code_align, &distance) || distance > room)
        distance = room;
    return distance;
}

static uint32_t apply_registers(const struct run *run, uint32_t form, struct base_cursor *c)
{
    const uint8_t *instruction = c->at;
    cfi_skip_operands(c, cfi_op_shape(base_read_u8(c)));
    const struct base_bytes whole = {instruction, (size_t)(c->at - instruction)};
    return c->failed ? (uint32_t)CFI_FORM_BAD_PROGRAM : cfi_form_interpret(run->forms, run->cie, form, whole);
}

// The row that holds up to here. False where memory lacks.
static inline bool put_row(const struct run *run, struct progress *progress)
{
    const uint32_t rule_id = cfi_point_rule(run->forms, progress->now);
    if (rule_id == CFI_RULE_NO_MEMORY)
        return false;
    cfi_row_writer_put(&progress->out, (uint32_t)progress->row_rel, rule_id);
    progress->row_count++;
    return true;
}

// False where memory lacks.
static inline bool run_any(const struct run *run, struct progress *progress)
{
    struct base_cursor c = progress->c; // a copy: others take its address
    struct cfi_point now = progress->now;
    uint64_t distance = 0;
    switch (cfi_op_shape(*c.at)) {
    case CFI_OP_OTHER: now.form = CFI_FORM_BAD_PROGRAM; break; // unknown: the usual ones do not come here
    case CFI_OP_CFA: now = cfi_point_with_cfa(run->forms, run->cie, now, &c); break;
    case CFI_OP_ADVANCE:
        distance = read_distance(run, &c, progress->row_rel);
        if (c.failed)
            now.form = CFI_FORM_BAD_PROGRAM;
        break;
    default: now.form = apply_registers(run, now.form, &c); break;
    }
    if (distance && !put_row(run, progress))
        return false;
    progress->row_rel += distance;
    progress->c = c;
    progress->now = now;
    return now.form != CFI_RULE_NO_MEMORY;
}

// Runs the program to its end. False where memory lacks.
static inline bool run_program(struct run *run, struct progress *progress)
{
    const uint64_t end_rel = run->fde->end_rel;
    // After a refused instruction nothing that follows can be trusted, a remembered state neither.
    while (base_cursor_left(&progress->c) && progress->row_rel < end_rel && cfi_form_is_sound(progress->now.form)) {
        run_usual(run, progress);
        if (base_cursor_left(&progress->c) && cfi_form_is_sound(progress->now.form) && !run_any(run, progress))
            return false;
    }
    if (progress->row_rel < end_rel && !put_row(run, progress))
        return false;
    cfi_row_writer_put(&progress->out, (uint32_t)end_rel, CFI_RULE_HOLE_ID);
    return true;
}

int cfi_program_run(struct cfi_program_runner *runner, struct cfi_cie *cie, const struct cfi_fde *fde,
                    uint64_t text_start, struct cfi_row_list *rows, struct base_error *error)
{
    if (!cie->has_initial_form && cfi_forms_begin(&runner->forms, cie, error) != 0)
        return -1;
    // Every row costs at least one byte of program.
    if (cfi_row_list_reserve(rows, (size_t)fde->program_size + 2, error) != 0)
        return -1;
    struct run run; // not all of it: what is remembered is much
    run.forms = &runner->forms;
    run.cie = cie;
    run.fde = fde;
    run.text_start = text_start;
    run.depth = 0;
    struct progress progress = {
        .c = base_cursor((struct base_bytes){fde->program, fde->program_size}),
        .now = {cie->initial_form, cie->initial_offset_bytes},
        .row_rel = fde->start_rel,
        .out = cfi_row_writer(rows),
    };
    cfi_row_writer_begin(&progress.out, fde->start_rel);
    if (!run_program(&run, &progress))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    cfi_row_writer_done(progress.out, rows);
    runner->row_count += progress.row_count;
    return 0;
}
