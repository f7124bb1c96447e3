// SPDX-License-Identifier: Apache-2.0
// What stands among code and is none: the numbers that followed code loads from beside itself, the tables that it jumps
// through. Nothing runs there, so that no rule is missing.
#include "qutc/code/inside.h"

static void note(struct code_walk *w, uint64_t vaddr, uint64_t bytes)
{
    struct input_range *place = BASE_ADD(&w->f->data);
    if (place)
        *place = (struct input_range){vaddr, vaddr + bytes};
    w->no_memory |= !place;
}

void code_note_literals(struct code_walk *w, const struct code_instruction *in)
{
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        if (op->kind == CODE_OP_INDEXED && op->from == CODE_REG_NONE && op->other == CODE_REG_NONE)
            note(w, (uint64_t)op->number, op->size_bytes);
    }
}

void code_note_tables(struct code_walk *w)
{
    for (size_t i = 0; i < w->jumps.count; i++) {
        const struct code_table_jump *jump = &w->jumps.items[i];
        if (!jump->is_stale && !jump->is_guessed) // of others the end is not known
            note(w, jump->table_vaddr, jump->table_bytes);
    }
}

uint64_t code_data_bytes(const struct code_follower *f, const struct cfi_row_list *rows)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->data.count; i++) {
        const struct input_range *range = &f->data.items[i];
        for (uint64_t vaddr = range->start; vaddr < range->end && code_is_in_text(f, vaddr); vaddr++) {
            uint32_t pc = (uint32_t)(vaddr - f->text_start);
            bool is_new = !(f->marks[pc] & CODE_MARK_COUNTED);
            f->marks[pc] |= CODE_MARK_COUNTED;
            bytes += is_new && code_is_executable(f, pc) && f->is_wanted(f->wanted_context, pc) &&
                     cfi_row_list_at(rows, pc) == CFI_RULE_HOLE_ID;
        }
    }
    return bytes;
}
