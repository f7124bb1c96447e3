// SPDX-License-Identifier: Apache-2.0
// libdwarf: a list of all functions, then a row by its pc, evaluated from the start of its function.
#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

#include "bench/compile/contestants.h"
#include "bench/measure.h"

enum { RULE_UNDEFINED = 1034, RULE_SAME = 1035, RULE_CFA = 1436 };

// Each row sets a whole table, so that its size counts: the library's own, and no more than x86-64 needs.
enum { REGISTERS_DEFAULT = DW_REG_TABLE_SIZE, REGISTERS_LEAST = 17 };

static uint64_t ask_all(const struct bench_subject *subject, Dwarf_Half registers, Dwarf_Fde *fdes,
                        Dwarf_Signed fde_count)
{
    Dwarf_Regtable_Entry3 rules[REGISTERS_DEFAULT];
    Dwarf_Regtable3 table = {.rt3_reg_table_size = registers, .rt3_rules = rules};
    uint64_t rows = 0;
    size_t next = 0;
    // Both lists ascend.
    for (Dwarf_Signed i = 0; i < fde_count; i++) {
        Dwarf_Addr start, row_pc;
        Dwarf_Unsigned size, record_size;
        Dwarf_Ptr record;
        Dwarf_Off cie_offset, fde_offset;
        Dwarf_Signed cie_index;
        Dwarf_Error fault = NULL;
        if (dwarf_get_fde_range(fdes[i], &start, &size, &record, &record_size, &cie_offset, &cie_index, &fde_offset,
                                &fault) != DW_DLV_OK)
            continue;
        while (next < subject->row_count && subject->row_starts[next] < start)
            next++;
        for (; next < subject->row_count && subject->row_starts[next] < start + size; next++)
            rows += dwarf_get_fde_info_for_all_regs3(fdes[i], subject->row_starts[next], &table, &row_pc, &fault) ==
                    DW_DLV_OK;
    }
    return rows;
}

static int run(const struct bench_subject *subject, Dwarf_Half registers, uint64_t *rows, uint64_t *end_ns)
{
    Dwarf_Debug dwarf;
    Dwarf_Error fault = NULL;
    if (dwarf_elf_init(subject->elf, DW_DLC_READ, NULL, NULL, &dwarf, &fault) != DW_DLV_OK)
        return -1;
    dwarf_set_frame_rule_table_size(dwarf, registers);
    dwarf_set_frame_undefined_value(dwarf, RULE_UNDEFINED);
    dwarf_set_frame_same_value(dwarf, RULE_SAME);
    dwarf_set_frame_cfa_value(dwarf, RULE_CFA);
    dwarf_set_frame_rule_initial_value(dwarf, RULE_SAME);
    Dwarf_Cie *cies = NULL;
    Dwarf_Fde *fdes = NULL;
    Dwarf_Signed cie_count = 0, fde_count = 0;
    int result = dwarf_get_fde_list_eh(dwarf, &cies, &cie_count, &fdes, &fde_count, &fault);
    *rows = result == DW_DLV_OK ? ask_all(subject, registers, fdes, fde_count) : 0;
    *end_ns = bench_now_ns();
    if (result == DW_DLV_OK)
        dwarf_fde_cie_list_dealloc(dwarf, cies, cie_count, fdes, fde_count);
    dwarf_finish(dwarf, &fault);
    return result == DW_DLV_OK ? 0 : -1;
}

int bench_run_libdwarf(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    return run(subject, REGISTERS_DEFAULT, rows, end_ns);
}

int bench_run_libdwarf_least(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    return run(subject, REGISTERS_LEAST, rows, end_ns);
}
