// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/table.h"

#include "formats/qut_standard_cells.h"
#include "libqut/arch/arch.h"

enum qut_table_fault runtime_table_attach(struct qut_table *table, const void *bytes, size_t size,
                                          uint64_t *fault_offset)
{
    enum qut_table_fault fault = qut_table_check(bytes, size, fault_offset);
    if (fault != QUT_TABLE_OK)
        return fault;
    const uint8_t *at = bytes;
    const struct qut_table_header *h = bytes;
    *table = (struct qut_table){
        .header = h,
        .groups = (const void *)(at + h->groups.offset),
        .blocks = at + h->blocks.offset,
        .cells = {[QUT_CELLS_OWN] = (const void *)(at + h->cells.offset),
                  [QUT_CELLS_STANDARD] = qut_standard_cells((enum qut_arch_id)h->arch).cells},
        .run_starts = (const void *)(at + h->run_starts.offset),
        .runs = at + h->runs.offset,
        .wides = at + h->wides.offset,
        .text_start = h->text_start,
        .text_size_units = h->text_size >> h->pc_shift,
        .pc_shift = h->pc_shift,
        .leads = h->leads,
    };
    return QUT_TABLE_OK;
}

// What is in force at a unit of text.
struct hit {
    uint32_t ref; // as the row has it; then, where that was a run, as the run's row has it
    const union qut_table_cell *cells;
    bool carried;         // the row began in an earlier block
    uint64_t start_units; // of the row, from text_start; meaningless where carried
    uint64_t next_units;  // of the next row or block
};

// Inlined: walks have little stack.
static inline __attribute__((always_inline)) struct hit find_in_block(const struct qut_table *table, uint64_t units)
{
    uint64_t block = units / QUT_BLOCK_UNITS;
    uint8_t x = (uint8_t)(units % QUT_BLOCK_UNITS);
    const struct qut_table_group *group = &table->groups[block / QUT_GROUP_BLOCKS];
    unsigned in_group = (unsigned)(block % QUT_GROUP_BLOCKS);
    const uint8_t *bytes = table->blocks + group->blocks_offset + qut_group_bytes_before(group, in_group);
    unsigned size = group->block_bytes[in_group];
    uint64_t block_start = block * QUT_BLOCK_UNITS;
    struct hit hit = {.carried = true, .next_units = block_start + QUT_BLOCK_UNITS};
    if ((size & 1) && bytes[0] == 0) {
        struct qut_wide_view wide = qut_wide_view(table->wides + qut_load_u32(bytes + 1));
        unsigned reached = qut_count_reached(wide.pcs, wide.row_count, x);
        if (reached < wide.row_count)
            hit.next_units = block_start + wide.pcs[reached];
        hit.carried = reached == 0;
        if (!hit.carried) {
            hit.start_units = block_start + wide.pcs[reached - 1];
            hit.ref = qut_load_u32(wide.refs + 4 * (size_t)(reached - 1));
        }
    } else {
        struct qut_block_view view = qut_block_view(bytes, size);
        unsigned reached = qut_count_reached(view.pcs, view.row_count, x);
        if (reached < view.row_count)
            hit.next_units = block_start + view.pcs[reached];
        hit.carried = reached == 0;
        if (!hit.carried) {
            hit.start_units = block_start + view.pcs[reached - 1];
            hit.ref = qut_block_ref(&table->leads, &view, reached - 1);
        }
    }
    if (hit.carried)
        hit.ref = qut_code_ref(&table->leads, bytes);
    return hit;
}

// Puts the row of the run that the reference names in its place.
static inline __attribute__((always_inline)) void enter_run(const struct qut_table *table, uint64_t units,
                                                            struct hit *hit)
{
    uint32_t run = hit->ref & ~QUT_REF_RUN;
    uint32_t start = table->run_starts[run];
    struct qut_block_view view = qut_block_view(table->runs + start, table->run_starts[run + 1] - start);
    // A run ends inside the block where it began: past that, its last row is in force.
    unsigned reached = view.row_count;
    if (!hit->carried) {
        reached = qut_count_reached(view.pcs, view.row_count, (uint8_t)(units - hit->start_units));
        if (reached < view.row_count && hit->start_units + view.pcs[reached] < hit->next_units)
            hit->next_units = hit->start_units + view.pcs[reached];
        hit->start_units += view.pcs[reached - 1];
    }
    hit->ref = qut_block_ref(&table->leads, &view, reached - 1);
}

static inline __attribute__((always_inline)) struct hit find(const struct qut_table *table, uint64_t units)
{
    struct hit hit = find_in_block(table, units);
    if (hit.ref & QUT_REF_RUN)
        enter_run(table, units, &hit);
    hit.cells = runtime_table_cells(table, hit.ref);
    return hit;
}

// In place: walks have little stack.
static void set_hole(struct qut_rule *rule)
{
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_HOLE;
    rule->dex_pc_reg = QUT_NO_REGISTER;
}

static void read_slot(int8_t slot, int word_bytes, int anchor_words, struct qut_reg_rule *reg)
{
    if (slot == QUT_SLOT_UNDEFINED) {
        reg->how = QUT_REG_UNDEFINED;
    } else if (slot != QUT_SLOT_SAME) { // *(cfa - word * anchor_words + word * slot)
        reg->how = QUT_REG_AT_CFA;
        reg->offset_bytes = (slot - anchor_words) * word_bytes;
    }
}

static void read_switch(const struct qut_table *table, const struct qut_rule_cell *cell, struct qut_rule *rule)
{
    int8_t which = cell->slot[0];
    if (which <= QUT_SWITCH_UNKNOWN || which >= QUT_SWITCH_END)
        return;
    rule->stack_switch = (uint8_t)which;
    rule->cfa.reg = cell->reg;
    rule->cfa.offset_bytes = cell->cfa_words * arch_by_id((enum qut_arch_id)table->header->arch)->word_bytes;
}

static void read_cell(const struct qut_table *table, const union qut_table_cell *cells, struct qut_rule *rule)
{
    const struct qut_rule_cell *cell = &cells->rule;
    set_hole(rule);
    if (cell->form == QUT_CELL_HOLE)
        return;
    if (cell->form == QUT_CELL_REFUSED) {
        rule->kind = QUT_RULE_REFUSED;
        rule->reason = cell->aux;
        if (cell->aux == QUT_REFUSED_STACK_SWITCH)
            read_switch(table, cell, rule);
        return;
    }
    if (cell->form == QUT_CELL_LONG) {
        memcpy(rule, cells + 1, sizeof *rule);
        return;
    }
    // Architectures with 4-byte words: arm, x86.
    const struct arch *arch = arch_by_id((enum qut_arch_id)table->header->arch);
    int word_bytes = arch->word_bytes;
    bool deref = cell->form == QUT_CELL_DEREF;
    rule->kind = QUT_RULE_FRAME;
    rule->flags = cell->flags & QUT_CELL_RULE_FLAGS;
    rule->cfa.reg = cell->reg;
    if (deref) { // cfa = *(reg + word * anchor_words) + word * cfa_words
        rule->cfa.how = QUT_CFA_DEREF;
        rule->cfa.offset_bytes = cell->anchor_words * word_bytes;
        rule->cfa.add_bytes = cell->cfa_words * word_bytes;
    } else { // cfa = reg + word * cfa_words
        rule->cfa.offset_bytes = cell->cfa_words * word_bytes;
    }
    int anchor_words = deref ? 0 : cell->anchor_words;
    read_slot(cell->slot[QUT_SLOT_RA], word_bytes, anchor_words, &rule->ra);
    for (int i = 0; i < arch->tracked_count; i++)
        read_slot(cell->slot[1 + i], word_bytes, anchor_words, &rule->tracked[i]);
    unsigned aux = cell->flags >> QUT_CELL_AUX_SHIFT & 3;
    if (aux == QUT_CELL_AUX_RA_REG)
        rule->ra = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = cell->aux};
    else if (aux == QUT_CELL_AUX_DEX_REG)
        rule->dex_pc_reg = cell->aux;
    else
        rule->origin = cell->aux;
}

// Where the padding in front of the hit's rule ends, in units from text_start; the row's start where there is none.
static uint64_t padding_end(const struct qut_table *table, const struct hit *hit)
{
    const struct qut_rule_cell *cell = &hit->cells->rule;
    bool can_be_padded = cell->form == QUT_CELL_FRAME || cell->form == QUT_CELL_DEREF;
    unsigned align = can_be_padded ? cell->flags >> QUT_CELL_ALIGN_SHIFT : 0;
    if (align == QUT_CELL_NOT_PADDED || hit->carried) // blocks begin at multiples of every alignment
        return hit->start_units;
    uint64_t align_units = (uint64_t)8 << align >> table->pc_shift;
    return (hit->start_units + align_units - 1) & ~(align_units - 1);
}

void runtime_table_rule(const struct qut_table *table, uint64_t pc, struct qut_rule *rule)
{
    uint64_t units = (pc - table->text_start) >> table->pc_shift;
    if (pc < table->text_start || units >= table->text_size_units) {
        set_hole(rule);
        return;
    }
    struct hit hit = find(table, units);
    if (!hit.carried && units < padding_end(table, &hit)) {
        set_hole(rule);
        return;
    }
    read_cell(table, hit.cells, rule);
}

const struct qut_rule_cell *qut_table_cell(const struct qut_table *table, uint64_t pc, uint64_t *row_end)
{
    uint64_t units = (pc - table->text_start) >> table->pc_shift;
    if (pc < table->text_start || units >= table->text_size_units)
        return NULL;
    struct hit hit = find(table, units);
    if (!hit.carried && units < padding_end(table, &hit))
        return NULL;
    *row_end = table->text_start + (hit.next_units << table->pc_shift);
    return &hit.cells->rule;
}

uint64_t runtime_table_row_start(const struct qut_table *table, uint64_t pc)
{
    uint64_t units = (pc - table->text_start) >> table->pc_shift;
    if (pc < table->text_start)
        return 0;
    if (units >= table->text_size_units)
        return table->text_start + table->header->text_size;
    struct hit hit = find(table, units);
    uint64_t rule_start = padding_end(table, &hit);
    if (!hit.carried)
        return table->text_start + ((units < rule_start ? hit.start_units : rule_start) << table->pc_shift);
    while (hit.carried && units >= QUT_BLOCK_UNITS) {
        units = units / QUT_BLOCK_UNITS * QUT_BLOCK_UNITS - 1; // the last unit of the block before
        hit = find(table, units);
    }
    // The padding in front of a row that is carried on ends at the block's end, or earlier.
    rule_start = hit.carried ? 0 : padding_end(table, &hit);
    return table->text_start + (rule_start << table->pc_shift);
}

bool runtime_table_next_row(const struct qut_table *table, uint64_t *pc, uint64_t *end, struct qut_rule *rule)
{
    uint64_t units = (*pc - table->text_start) >> table->pc_shift;
    if (*pc < table->text_start || units >= table->text_size_units)
        return false;
    struct hit hit = find(table, units);
    uint64_t end_units = hit.next_units;
    uint64_t rule_start = padding_end(table, &hit);
    if (!hit.carried && units < rule_start) {
        set_hole(rule);
        if (rule_start < end_units)
            end_units = rule_start;
    } else {
        read_cell(table, hit.cells, rule);
    }
    if (end_units > table->text_size_units)
        end_units = table->text_size_units;
    *end = table->text_start + (end_units << table->pc_shift);
    return true;
}
