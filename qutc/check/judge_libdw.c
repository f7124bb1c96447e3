// SPDX-License-Identifier: Apache-2.0
// elfutils' libdw as a judge. Observed in 0.188 and stepped around:
//   - 0x2d is read as SPARC's window_save on every architecture and overwrites x16..x31: the private copy has nops
//   - of FDEs that overlap, the one met first hides the others: abstains on all of them
//   - a terminator between records ends the section: the private copy has none
//   - a register that no instruction mentions is undefined unless elfutils' ABI tables name it, and its x86-64 table
//     leaves rbx and r12..r15 out: "undefined" counts only where an instruction of the FDE or its CIE says
//     so, else the register is unchanged
//   - libdwarf has a dwarf_errmsg and a dwarf_errno of its own: the order of linking decides which one a call
//     reaches, so neither is called; "no FDE" and "bad FDE" are told apart by the walk
//   - a row costs the rows before it, so that an FDE costs their square: abstains on FDEs of more than ROWS_MAX
//   - restore_state brings back where the remembered row started: a row counts from the pc that was asked for
//   - pointers relative to the text's or the data's start are read as absolute: abstains
//   - FDEs that a linker left of discarded code, at address 0, reach over the text: abstains
//   - the Thumb bit in an address moves the FDE by a byte: abstains
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "qutc/check/elf_wrap.h"
#include "qutc/check/judge_row.h"

enum { ROWS_MAX = 20000 };

struct check_judge {
    const struct arch *arch;
    struct check_walk_index index;
    struct check_elf_wrap wrap;
    Elf *elf;
    Dwarf *dwarf; // .debug_frame only; owns cfi then
    Dwarf_CFI *cfi;
    bool has_row; // `row` holds for pcs in it
    struct check_judge_row row;
};

static void libdw_close(struct check_judge *judge)
{
    if (judge->dwarf)
        dwarf_end(judge->dwarf);
    else if (judge->cfi)
        dwarf_cfi_end(judge->cfi);
    if (judge->elf)
        elf_end(judge->elf);
    free(judge->wrap.bytes);
    check_walk_free(&judge->index);
    free(judge);
}

static struct check_judge *libdw_open(const struct input_image *image, const struct input_frame_section *section,
                                      struct base_error *error)
{
    if (section->kind == INPUT_FRAME_EXIDX) {
        base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "libdw does not read it");
        return NULL;
    }
    struct check_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "judge");
        return NULL;
    }
    judge->arch = image->arch;
    if (check_walk_section(image, section, &judge->index, error) ||
        check_elf_wrap(&judge->index, false, &judge->wrap, error)) {
        libdw_close(judge);
        return NULL;
    }
    elf_version(EV_CURRENT);
    judge->elf = elf_memory((char *)judge->wrap.bytes, judge->wrap.size);
    if (judge->elf && section->kind == INPUT_FRAME_DEBUG) {
        judge->dwarf = dwarf_begin_elf(judge->elf, DWARF_C_READ, NULL);
        judge->cfi = judge->dwarf ? dwarf_getcfi(judge->dwarf) : NULL;
    } else if (judge->elf) {
        judge->cfi = dwarf_getcfi_elf(judge->elf);
    }
    // A section with nothing but a terminator is refused.
    if (!judge->cfi && judge->index.fdes.count) {
        base_fail(error, BASE_ERR_MALFORMED, section->name, 0, "libdw: cannot open it");
        libdw_close(judge);
        return NULL;
    }
    return judge;
}

static void take_program(struct check_judge_row *row, struct check_place *place, const Dwarf_Op *ops, size_t count)
{
    struct check_dwarf_op copied[CHECK_ROW_OPS_MAX];
    if (count > CHECK_ROW_OPS_MAX) {
        row->abstain = "expressions too long";
        return;
    }
    for (size_t i = 0; i < count; i++)
        copied[i] = (struct check_dwarf_op){ops[i].atom, ops[i].number, ops[i].number2, ops[i].offset};
    check_judge_row_program(row, place, copied, (unsigned)count);
}

// libdw's convention: no operations at NULL is "same value", at the caller's buffer "undefined".
// `undefined`: the registers that an instruction calls so.
static void take_register(Dwarf_Frame *frame, uint64_t undefined, int regno, struct check_judge_row *row,
                          struct check_place *place)
{
    Dwarf_Op buffer[3];
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_register(frame, regno, buffer, &ops, &count) != 0)
        place->kind = CHECK_PLACE_UNKNOWN;
    else if (count)
        take_program(row, place, ops, count);
    else
        place->kind = ops && regno < 64 && (undefined >> regno & 1) ? CHECK_PLACE_UNDEFINED : CHECK_PLACE_SAME;
}

static void take_row(struct check_judge *judge, const struct check_walk_fde *fde, uint64_t pc, Dwarf_Frame *frame)
{
    struct check_judge_row *row = &judge->row;
    Dwarf_Addr start, end;
    bool signal_frame;
    int ra_column = dwarf_frame_info(frame, &start, &end, &signal_frame);
    row->start = pc;
    row->end = end;
    row->signal_frame = signal_frame;
    row->ra_column = (uint64_t)ra_column;

    Dwarf_Op *ops;
    size_t count;
    if (ra_column < 0 || dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0) {
        row->abstain = "no CFA";
        return;
    }
    take_program(row, &row->cfa, ops, count);
    uint64_t undefined = fde ? fde->undefined : UINT64_MAX;
    take_register(frame, undefined, ra_column, row, &row->ra);
    take_register(frame, undefined, judge->arch->sp_reg, row, &row->sp);
    for (unsigned slot = 0; slot < judge->arch->tracked_count; slot++)
        take_register(frame, undefined, judge->arch->tracked[slot], row, &row->tracked[slot]);

    uint8_t marked[2];
    unsigned marked_count = check_dex_mark_registers(judge->arch, marked);
    for (unsigned i = 0; i < marked_count; i++) {
        struct check_place place;
        uint16_t pool = row->op_count;
        take_register(frame, undefined, marked[i], row, &place);
        check_judge_row_dex_pc(row, &place);
        row->op_count = pool;
    }
    if (fde)
        row->ra_signed = check_walk_ra_signed(&judge->index, fde, row->start);
}

static void libdw_at(struct check_judge *judge, const struct arch_frame_regs *frame, runtime_read_word read,
                     void *context, struct check_judgement *judgement)
{
    uint64_t pc = frame->pc;
    *judgement = (struct check_judgement){.verdict = CHECK_VERDICT_NO_ROW, .start = pc, .end = UINT64_MAX};
    struct check_judge_row *row = &judge->row;
    if (!judge->has_row || pc < row->start || pc >= row->end) {
        judge->has_row = false;
        const struct check_walk_fde *fde = check_walk_find(&judge->index, pc);
        if (check_judge_doubts(&judge->index, fde, pc, judgement))
            return;
        const char *reason = NULL;
        if (fde && fde->overlaps)
            reason = "overlapping FDEs";
        else if (fde && fde->advances > ROWS_MAX)
            reason = "FDE with too many rows";
        if (reason) {
            check_judge_abstain(judgement, reason);
            return;
        }
        Dwarf_Frame *found = NULL;
        if (!judge->cfi || dwarf_cfi_addrframe(judge->cfi, pc, &found) != 0) {
            if (fde)
                check_judge_abstain(judgement, "cannot decode the FDE");
            return;
        }
        check_judge_row_reset(row);
        take_row(judge, fde, pc, found);
        free(found);
        judge->has_row = true;
    }
    check_judge_row_values(row, judge->arch, frame, read, context, judgement);
}

static int libdw_boundaries(struct check_judge *judge, uint64_t **pcs, size_t *count, struct base_error *error)
{
    return check_walk_boundaries(&judge->index, pcs, count, error);
}

const struct check_judge_class check_judge_libdw = {
    .name = "libdw",
    .open = libdw_open,
    .at = libdw_at,
    .boundaries = libdw_boundaries,
    .close = libdw_close,
};
