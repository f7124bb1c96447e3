// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/judge_row.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_rule.h"

enum { DEX_MARK = 0x31584544 }; // "DEX1"

void check_judge_row_reset(struct check_judge_row *row)
{
    // Not the pool: 16 KiB a row would cost more than the row.
    memset(row, 0, offsetof(struct check_judge_row, ops));
    row->dex_pc_reg = QUT_NO_REGISTER;
}

void check_judge_row_program(struct check_judge_row *row, struct check_place *place, const struct check_dwarf_op *ops,
                             unsigned count)
{
    if (count > (unsigned)CHECK_ROW_OPS_MAX - row->op_count) {
        place->kind = CHECK_PLACE_UNKNOWN;
        row->abstain = "expressions too long";
        return;
    }
    *place = (struct check_place){CHECK_PLACE_PROGRAM, row->op_count, (uint16_t)count};
    memcpy(row->ops + row->op_count, ops, count * sizeof *ops);
    row->op_count = (uint16_t)(row->op_count + count);
}

void check_judge_row_dex_pc(struct check_judge_row *row, const struct check_place *place)
{
    if (place->kind != CHECK_PLACE_PROGRAM)
        return;
    const struct check_dwarf_op *op = row->ops + place->first;
    unsigned count = place->count;
    if (count && op->atom == DW_OP_call_frame_cfa) {
        op++;
        count--;
    }
    if (count < 3 || op[0].atom != DW_OP_const4u || op[0].number != DEX_MARK || op[1].atom != DW_OP_drop)
        return;
    if (op[2].atom == DW_OP_bregx && op[2].number2 == 0 && op[2].number < QUT_NO_REGISTER)
        row->dex_pc_reg = (uint8_t)op[2].number;
}

unsigned check_dex_mark_registers(const struct arch *arch, uint8_t registers[2])
{
    registers[0] = 0;
    registers[1] = 5; // rdi
    return arch->id == QUT_ARCH_X86_64 ? 2 : arch->id == QUT_ARCH_RISCV64 ? 0 : 1;
}

static bool reads_pc(const struct check_judge_row *row, unsigned pc_reg)
{
    if (pc_reg == QUT_NO_REGISTER)
        return false;
    for (unsigned i = 0; i < row->op_count; i++) {
        const struct check_dwarf_op *op = &row->ops[i];
        if ((op->atom == DW_OP_bregx && op->number == pc_reg) ||
            (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31 && op->atom == DW_OP_breg0 + pc_reg))
            return true;
    }
    return false;
}

// Whether the place has a value. `same` is the value of the register itself.
static bool place_value(const struct check_judge_row *row, const struct check_dwarf_machine *machine,
                        const struct check_place *place, uint64_t same_reg, uint64_t *value)
{
    if (place->kind == CHECK_PLACE_SAME) {
        if (same_reg >= ARCH_REGISTERS_MAX)
            return false;
        *value = machine->frame->reg[same_reg];
        return machine->frame->valid >> same_reg & 1;
    }
    if (place->kind != CHECK_PLACE_PROGRAM)
        return false;
    uint64_t where;
    enum check_dwarf_result result = check_dwarf_run(machine, row->ops + place->first, place->count, &where);
    if (result == CHECK_DWARF_VALUE)
        *value = where;
    else if (result != CHECK_DWARF_ADDRESS || !machine->read(machine->context, where, value))
        return false;
    if (machine->word_bytes == 4)
        *value &= UINT32_MAX;
    return true;
}

void check_judge_row_values(const struct check_judge_row *row, const struct arch *arch,
                            const struct arch_frame_regs *frame, runtime_read_word read, void *context,
                            struct check_judgement *judgement)
{
    judgement->start = row->start;
    judgement->end = row->end;
    if (row->abstain) {
        check_judge_abstain(judgement, row->abstain);
        return;
    }
    judgement->signal_frame = row->signal_frame;
    judgement->ra_signed_known = true;
    judgement->ra_signed = row->ra_signed;
    judgement->dex_pc_known = true;
    judgement->dex_pc_reg = row->dex_pc_reg;
    judgement->depends_on_pc = reads_pc(row, arch->pc_reg);

    struct check_dwarf_machine machine = {
        .word_bytes = arch->word_bytes,
        .frame = frame,
        .vector_bytes_reg = arch->vector_bytes_reg,
        .read = read,
        .context = context,
    };
    uint64_t cfa;
    enum check_dwarf_result result = CHECK_DWARF_BAD_PROGRAM;
    if (row->cfa.kind == CHECK_PLACE_PROGRAM)
        result = check_dwarf_run(&machine, row->ops + row->cfa.first, row->cfa.count, &cfa);
    if (result != CHECK_DWARF_VALUE && result != CHECK_DWARF_ADDRESS) {
        check_judge_abstain(judgement, "no CFA that can be evaluated");
        return;
    }
    machine.has_cfa = true;
    machine.cfa = judgement->cfa = judgement->sp = cfa;

    if (row->ra.kind == CHECK_PLACE_UNDEFINED) {
        judgement->verdict = CHECK_VERDICT_END;
        return;
    }
    if (!place_value(row, &machine, &row->ra, row->ra_column, &judgement->ra)) {
        check_judge_abstain(judgement, "no return address that can be evaluated");
        return;
    }
    if (row->sp.kind != CHECK_PLACE_SAME && !place_value(row, &machine, &row->sp, arch->sp_reg, &judgement->sp)) {
        check_judge_abstain(judgement, "no stack pointer that can be evaluated");
        return;
    }
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        const struct check_place *place = &row->tracked[slot];
        if (place->kind == CHECK_PLACE_UNDEFINED)
            judgement->tracked_undefined |= (uint8_t)(1u << slot);
        else if (!place_value(row, &machine, place, arch->tracked[slot], &judgement->tracked[slot]))
            judgement->tracked_unknown |= (uint8_t)(1u << slot);
    }
    judgement->verdict = CHECK_VERDICT_ROW;
}

static int compare_pcs(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

bool check_judge_doubts(const struct check_walk_index *index, const struct check_walk_fde *fde, uint64_t pc,
                        struct check_judgement *judgement)
{
    // With the bit it ends a byte later, too.
    const struct check_walk_fde *before = fde || !index->image->arch->has_thumb ? NULL : check_walk_find(index, pc - 1);
    if ((fde && fde->has_thumb_bit) || (before && before->has_thumb_bit)) {
        check_judge_abstain(judgement, "Thumb bit in an FDE's address");
        judgement->end = fde ? fde->end : pc + 2;
        return true;
    }
    if (fde && fde->is_discarded) {
        check_judge_abstain(judgement, "FDE of discarded code");
        return true;
    }
    if (fde && fde->relative_base) {
        check_judge_abstain(judgement, "pointers relative to text or data");
        return true;
    }
    return false;
}

void check_sort_pcs(uint64_t *pcs, size_t *count)
{
    qsort(pcs, *count, sizeof *pcs, compare_pcs);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (!kept || pcs[kept - 1] != pcs[i])
            pcs[kept++] = pcs[i];
    *count = kept;
}

int check_walk_boundaries(const struct check_walk_index *index, uint64_t **pcs, size_t *count, struct base_error *error)
{
    *count = 0;
    *pcs = malloc((2 * index->fdes.count + 1) * sizeof **pcs);
    if (!*pcs)
        return base_fail(error, BASE_ERR_NO_MEMORY, index->section->name, 0, "list of functions");
    for (size_t i = 0; i < index->fdes.count; i++) {
        (*pcs)[(*count)++] = index->fdes.items[i].start;
        (*pcs)[(*count)++] = index->fdes.items[i].end;
    }
    check_sort_pcs(*pcs, count);
    return 0;
}
