// SPDX-License-Identifier: Apache-2.0
// libdwarf as a judge. Observed in 20210528 and stepped around:
//   - a row costs the rows before it, so that an FDE costs their square: abstains on FDEs of more than ROWS_MAX
//   - building the list costs the square of the number of CIEs: not opened with more than CIES_MAX
//   - register numbers are cut to 16 bits without a word: abstains on FDEs with wider ones
//   - set_loc is read as an absolute address whatever the encoding: abstains
//   - libdw has a dwarf_errmsg and a dwarf_errno of its own: neither is called here
//   - a .debug_frame whose augmentation begins with z (ART's) is taken for IRIX's and refused: shown as .eh_frame
//   - FDEs that a linker left of discarded code, at address 0, reach over the text: abstains
//   - the Thumb bit in an address moves the FDE by a byte: abstains
//   - the augmentation letters B and G make it refuse the section: the private copy has none
//   - one malformed record and the whole section has no list: not opened
#include <dwarf.h>
#include <libdwarf/libdwarf.h>
#include <libelf.h>
#include <stdlib.h>

#include "qutc/check/elf_wrap.h"
#include "qutc/check/judge_row.h"

enum {
    ROWS_MAX = 20000,
    CIES_MAX = 8000,
    RULE_UNDEFINED = 0x7000, // above every register number
    RULE_SAME = 0x7001,
    RULE_CFA = 0x7002,
    TABLE_SIZE = 512, // registers: Arm's reach 287
};

struct function {
    uint64_t start, end;
    uint64_t order; // in the section
    uint64_t reach; // greatest end of this and all before it
    Dwarf_Fde fde;
};

struct check_judge {
    const struct arch *arch;
    struct check_walk_index index;
    struct check_elf_wrap wrap;
    Elf *elf;
    Dwarf_Debug dwarf;
    Dwarf_Cie *cies;
    Dwarf_Signed cie_count;
    Dwarf_Fde *fdes;
    Dwarf_Signed fde_count;
    struct function *functions; // sorted
    size_t function_count;
    bool has_row; // `row` holds for pcs in it
    struct check_judge_row row;
};

static void libdwarf_close(struct check_judge *judge)
{
    Dwarf_Error ignored;
    free(judge->functions);
    if (judge->dwarf) {
        if (judge->fdes)
            dwarf_fde_cie_list_dealloc(judge->dwarf, judge->cies, judge->cie_count, judge->fdes, judge->fde_count);
        dwarf_finish(judge->dwarf, &ignored);
    }
    if (judge->elf)
        elf_end(judge->elf);
    free(judge->wrap.bytes);
    check_walk_free(&judge->index);
    free(judge);
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int list_functions(struct check_judge *judge, struct base_error *error)
{
    const char *name = judge->index.section->name;
    judge->functions = calloc((size_t)judge->fde_count + 1, sizeof *judge->functions);
    if (!judge->functions)
        return base_fail(error, BASE_ERR_NO_MEMORY, name, 0, "list of functions");
    for (Dwarf_Signed i = 0; i < judge->fde_count; i++) {
        Dwarf_Addr start;
        Dwarf_Unsigned size, record_size;
        Dwarf_Ptr record;
        Dwarf_Off cie_offset, fde_offset;
        Dwarf_Signed cie_index;
        Dwarf_Error fault = NULL;
        if (dwarf_get_fde_range(judge->fdes[i], &start, &size, &record, &record_size, &cie_offset, &cie_index,
                                &fde_offset, &fault) != DW_DLV_OK)
            return base_fail(error, BASE_ERR_MALFORMED, name, 0, "libdwarf: bad FDE");
        uint64_t mask = judge->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
        start &= mask;
        if (size && start + size > start)
            judge->functions[judge->function_count++] =
                (struct function){.start = start, .end = start + size, .order = fde_offset, .fde = judge->fdes[i]};
    }
    qsort(judge->functions, judge->function_count, sizeof *judge->functions, compare_functions);
    uint64_t reach = 0;
    for (size_t i = 0; i < judge->function_count; i++) {
        if (judge->functions[i].end > reach)
            reach = judge->functions[i].end;
        judge->functions[i].reach = reach;
    }
    return 0;
}

static int libdwarf_start(struct check_judge *judge, const struct input_frame_section *section,
                          struct base_error *error)
{
    Dwarf_Error fault = NULL;
    elf_version(EV_CURRENT);
    judge->elf = elf_memory((char *)judge->wrap.bytes, judge->wrap.size);
    if (!judge->elf)
        return base_fail(error, BASE_ERR_MALFORMED, section->name, 0, "libelf: %s", elf_errmsg(-1));
    int result = dwarf_elf_init(judge->elf, DW_DLC_READ, NULL, NULL, &judge->dwarf, &fault);
    if (result != DW_DLV_OK) {
        judge->dwarf = NULL;
        return base_fail(error, BASE_ERR_MALFORMED, section->name, 0, "libdwarf: cannot open it");
    }
    dwarf_set_frame_rule_table_size(judge->dwarf, TABLE_SIZE);
    dwarf_set_frame_undefined_value(judge->dwarf, RULE_UNDEFINED);
    dwarf_set_frame_same_value(judge->dwarf, RULE_SAME);
    dwarf_set_frame_cfa_value(judge->dwarf, RULE_CFA);
    dwarf_set_frame_rule_initial_value(judge->dwarf, RULE_SAME);
    result = (judge->wrap.is_eh ? dwarf_get_fde_list_eh : dwarf_get_fde_list)(
        judge->dwarf, &judge->cies, &judge->cie_count, &judge->fdes, &judge->fde_count, &fault);
    if (result == DW_DLV_NO_ENTRY) {
        judge->fdes = NULL;
        judge->fde_count = 0;
        return 0;
    }
    if (result != DW_DLV_OK) {
        judge->fdes = NULL;
        return base_fail(error, BASE_ERR_MALFORMED, section->name, 0, "libdwarf: cannot list the FDEs");
    }
    return list_functions(judge, error);
}

static bool has_sized_augmentation(const struct check_walk_index *index)
{
    for (size_t i = 0; i < index->cies.count; i++)
        if (index->cies.items[i].sized_augmentation)
            return true;
    return false;
}

static struct check_judge *libdwarf_open(const struct input_image *image, const struct input_frame_section *section,
                                         struct base_error *error)
{
    if (section->kind == INPUT_FRAME_EXIDX) {
        base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "libdwarf does not read it");
        return NULL;
    }
    struct check_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "judge");
        return NULL;
    }
    judge->arch = image->arch;
    if (check_walk_section(image, section, &judge->index, error)) {
        libdwarf_close(judge);
        return NULL;
    }
    if (judge->index.cies.count > CIES_MAX) {
        base_fail(error, BASE_ERR_LIMIT, section->name, 0, "libdwarf: more than %d CIEs", CIES_MAX);
        libdwarf_close(judge);
        return NULL;
    }
    if (check_elf_wrap(&judge->index, has_sized_augmentation(&judge->index), &judge->wrap, error) ||
        libdwarf_start(judge, section, error)) {
        libdwarf_close(judge);
        return NULL;
    }
    return judge;
}

static const struct function *find_function(const struct check_judge *judge, uint64_t pc)
{
    size_t low = 0, high = judge->function_count; // the first that starts behind pc
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (judge->functions[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *found = NULL;
    while (low-- > 0 && judge->functions[low].reach > pc) {
        const struct function *function = &judge->functions[low];
        if (found && function->start != found->start)
            break;
        if (function->end > pc)
            found = function;
    }
    return found;
}

// One column's answer, as libdwarf states it.
struct column {
    Dwarf_Small type; // DW_EXPR_*
    Dwarf_Signed has_offset, reg, offset_or_size;
    Dwarf_Ptr block;
};

static void take_expression(struct check_judge *judge, const struct column *column, bool with_cfa, bool is_value,
                            struct check_place *place)
{
    struct check_dwarf_op ops[CHECK_ROW_OPS_MAX];
    unsigned first = 0, count;
    if (with_cfa)
        ops[first++] = (struct check_dwarf_op){.atom = DW_OP_call_frame_cfa, .offset = UINT64_MAX};
    struct base_bytes block = {column->block, (size_t)column->offset_or_size};
    if (!check_dwarf_decode(block, judge->arch->word_bytes, ops + first, CHECK_ROW_OPS_MAX - first - 1, &count)) {
        place->kind = CHECK_PLACE_UNKNOWN;
        return;
    }
    count += first;
    if (is_value)
        ops[count++] = (struct check_dwarf_op){.atom = DW_OP_stack_value, .offset = block.size};
    check_judge_row_program(&judge->row, place, ops, count);
}

static void take_cfa(struct check_judge *judge, const struct column *column)
{
    struct check_judge_row *row = &judge->row;
    if (column->type == DW_EXPR_EXPRESSION || column->type == DW_EXPR_VAL_EXPRESSION) {
        take_expression(judge, column, false, false, &row->cfa);
    } else if (column->reg < 0 || column->reg >= RULE_UNDEFINED) {
        row->abstain = "no CFA";
    } else {
        struct check_dwarf_op op = {
            .atom = DW_OP_bregx, .number = (uint64_t)column->reg, .number2 = (uint64_t)column->offset_or_size};
        check_judge_row_program(row, &row->cfa, &op, 1);
    }
}

static void take_column(struct check_judge *judge, const struct column *column, struct check_place *place)
{
    struct check_dwarf_op ops[3] = {
        {.atom = DW_OP_call_frame_cfa},
        {.atom = DW_OP_plus_uconst, .number = (uint64_t)column->offset_or_size},
        {.atom = DW_OP_stack_value},
    };
    switch (column->type) {
    case DW_EXPR_OFFSET:
        if (column->has_offset) {
            check_judge_row_program(&judge->row, place, ops, 2);
        } else if (column->reg == RULE_SAME) {
            place->kind = CHECK_PLACE_SAME;
        } else if (column->reg == RULE_UNDEFINED) {
            place->kind = CHECK_PLACE_UNDEFINED;
        } else {
            ops[0] = (struct check_dwarf_op){.atom = DW_OP_regx, .number = (uint64_t)column->reg};
            check_judge_row_program(&judge->row, place, ops, 1);
        }
        break;
    case DW_EXPR_VAL_OFFSET: check_judge_row_program(&judge->row, place, ops, 3); break;
    case DW_EXPR_EXPRESSION: take_expression(judge, column, true, false, place); break;
    case DW_EXPR_VAL_EXPRESSION: take_expression(judge, column, true, true, place); break;
    default: place->kind = CHECK_PLACE_UNKNOWN;
    }
}

static void take_register(struct check_judge *judge, Dwarf_Fde fde, uint64_t reg, uint64_t pc,
                          struct check_place *place)
{
    struct column column;
    Dwarf_Addr row_pc, next_pc;
    Dwarf_Bool more;
    Dwarf_Error fault = NULL;
    if (reg >= TABLE_SIZE || dwarf_get_fde_info_for_reg3_b(fde, (Dwarf_Half)reg, pc, &column.type, &column.has_offset,
                                                           &column.reg, &column.offset_or_size, &column.block, &row_pc,
                                                           &more, &next_pc, &fault) != DW_DLV_OK) {
        place->kind = CHECK_PLACE_UNKNOWN;
        if (fault)
            dwarf_dealloc(judge->dwarf, fault, DW_DLA_ERROR);
        return;
    }
    take_column(judge, &column, place);
}

// The return-address column and the signal mark, of the CIE.
static bool take_cie(struct check_judge *judge, Dwarf_Fde fde)
{
    Dwarf_Cie cie;
    Dwarf_Unsigned bytes, code_align, program_size;
    Dwarf_Signed data_align;
    Dwarf_Small version;
    Dwarf_Half ra_column, offset_size;
    Dwarf_Ptr program;
    Dwarf_Error fault = NULL;
    char *augmentation = NULL;
    if (dwarf_get_cie_of_fde(fde, &cie, &fault) != DW_DLV_OK ||
        dwarf_get_cie_info_b(cie, &bytes, &version, &augmentation, &code_align, &data_align, &ra_column, &program,
                             &program_size, &offset_size, &fault) != DW_DLV_OK)
        return false;
    judge->row.ra_column = ra_column;
    for (const char *letter = augmentation; letter && *letter; letter++)
        judge->row.signal_frame |= *letter == 'S';
    return true;
}

static void take_row(struct check_judge *judge, const struct function *function, const struct check_walk_fde *walked,
                     uint64_t pc)
{
    struct check_judge_row *row = &judge->row;
    Dwarf_Fde fde = function->fde;
    struct column column;
    Dwarf_Addr row_pc = function->start, next_pc = function->end;
    Dwarf_Bool more = 0;
    Dwarf_Error fault = NULL;
    int result =
        dwarf_get_fde_info_for_cfa_reg3_b(fde, pc, &column.type, &column.has_offset, &column.reg,
                                          &column.offset_or_size, &column.block, &row_pc, &more, &next_pc, &fault);
    row->start = pc;
    row->end = function->end;
    if (result != DW_DLV_OK) {
        row->abstain = "cannot decode the FDE";
        if (fault)
            dwarf_dealloc(judge->dwarf, fault, DW_DLA_ERROR);
        return;
    }
    row->start = row_pc;
    if (more && next_pc > pc && next_pc < function->end)
        row->end = next_pc;
    take_cfa(judge, &column);
    if (!take_cie(judge, fde)) {
        row->abstain = "cannot decode the CIE";
        return;
    }
    take_register(judge, fde, row->ra_column, pc, &row->ra);
    take_register(judge, fde, judge->arch->sp_reg, pc, &row->sp);
    for (unsigned slot = 0; slot < judge->arch->tracked_count; slot++)
        take_register(judge, fde, judge->arch->tracked[slot], pc, &row->tracked[slot]);

    uint8_t marked[2];
    unsigned marked_count = check_dex_mark_registers(judge->arch, marked);
    for (unsigned i = 0; i < marked_count; i++) {
        struct check_place place;
        uint16_t pool = row->op_count;
        take_register(judge, fde, marked[i], pc, &place);
        check_judge_row_dex_pc(row, &place);
        row->op_count = pool;
    }
    if (walked)
        row->ra_signed = check_walk_ra_signed(&judge->index, walked, pc);
}

static void libdwarf_at(struct check_judge *judge, const struct arch_frame_regs *frame, runtime_read_word read,
                        void *context, struct check_judgement *judgement)
{
    uint64_t pc = frame->pc;
    *judgement = (struct check_judgement){.verdict = CHECK_VERDICT_NO_ROW, .start = pc, .end = UINT64_MAX};
    if (!judge->has_row || pc < judge->row.start || pc >= judge->row.end) {
        judge->has_row = false;
        const struct check_walk_fde *walked = check_walk_find(&judge->index, pc);
        if (check_judge_doubts(&judge->index, walked, pc, judgement))
            return;
        const struct function *function = find_function(judge, pc);
        if (!function)
            return;
        const char *reason = !walked                       ? NULL
                             : walked->advances > ROWS_MAX ? "FDE with too many rows"
                             : walked->has_wide_register   ? "register number wider than 16 bits"
                             : walked->has_set_loc         ? "set_loc"
                                                           : NULL;
        if (reason) {
            check_judge_abstain(judgement, reason);
            return;
        }
        check_judge_row_reset(&judge->row);
        take_row(judge, function, walked, pc);
        judge->has_row = true;
    }
    check_judge_row_values(&judge->row, judge->arch, frame, read, context, judgement);
}

static int libdwarf_boundaries(struct check_judge *judge, uint64_t **pcs, size_t *count, struct base_error *error)
{
    *count = 0;
    *pcs = malloc((2 * judge->function_count + 1) * sizeof **pcs);
    if (!*pcs)
        return base_fail(error, BASE_ERR_NO_MEMORY, judge->index.section->name, 0, "list of functions");
    for (size_t i = 0; i < judge->function_count; i++) {
        (*pcs)[(*count)++] = judge->functions[i].start;
        (*pcs)[(*count)++] = judge->functions[i].end;
    }
    check_sort_pcs(*pcs, count);
    return 0;
}

const struct check_judge_class check_judge_libdwarf = {
    .name = "libdwarf",
    .open = libdwarf_open,
    .at = libdwarf_at,
    .boundaries = libdwarf_boundaries,
    .close = libdwarf_close,
};
