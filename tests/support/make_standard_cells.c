// SPDX-License-Identifier: Apache-2.0
// Prints formats/qut_standard_cells_NAME.c of many files' tables, all of one architecture, made while the hole was its
// only standard cell:
//
//   make_standard_cells NAME COUNT TABLE...
//
// First come the rules that have the most rows: each table counts as much as any other, so that those of a few large
// libraries do not push out what all files have. They have codes of one byte. Behind them come those that the most
// tables have, and that each of them is spared a cell for; at last those of several cells.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/table_file.h"

enum { RULES_MAX = 1 << 16, BY_ROWS = 208, LONG_MAX = 3 };

struct rule {
    union qut_table_cell cells[QUT_LONG_CELLS];
    unsigned cell_count;
    unsigned tables;
    double shares;        // of tables' rows
    unsigned rows, table; // of the table that was read last
};

static struct rule rules[RULES_MAX];
static unsigned rule_count;

static struct rule *find(const struct qut_rule_cell *cell)
{
    const unsigned cell_count = cell->form == QUT_CELL_LONG ? QUT_LONG_CELLS : 1;
    for (unsigned i = 0; i < rule_count; i++)
        if (rules[i].cell_count == cell_count && memcmp(rules[i].cells, cell, cell_count * sizeof *rules->cells) == 0)
            return &rules[i];
    if (rule_count == RULES_MAX)
        return NULL;
    memcpy(rules[rule_count].cells, cell, cell_count * sizeof *rules->cells);
    rules[rule_count].cell_count = cell_count;
    return &rules[rule_count++];
}

static void count(const struct qut_table *table, unsigned number)
{
    struct qut_rule ignored;
    for (uint64_t pc = table->text_start, end; runtime_table_next_row(table, &pc, &end, &ignored); pc = end) {
        uint64_t row_end;
        const struct qut_rule_cell *cell = qut_table_cell(table, pc, &row_end);
        struct rule *rule = cell && cell->form != QUT_CELL_HOLE ? find(cell) : NULL;
        // A row that goes on in a later block is one row.
        if (!rule || (pc > table->text_start && runtime_table_row_start(table, pc) < pc))
            continue;
        rule->rows = rule->table == number ? rule->rows + 1 : 1;
        rule->tables += rule->table != number;
        rule->table = number;
        rule->shares += 1.0 / table->header->row_count;
    }
}

static int by_shares(const void *left, const void *right)
{
    const struct rule *a = left, *b = right;
    return a->shares < b->shares ? 1 : a->shares > b->shares ? -1 : memcmp(a->cells, b->cells, sizeof a->cells);
}

static int by_tables(const void *left, const void *right)
{
    const struct rule *a = left, *b = right;
    return a->tables < b->tables ? 1 : a->tables > b->tables ? -1 : by_shares(left, right);
}

static void print_cell(const struct qut_rule_cell *cell)
{
    int slots = 1 + QUT_TRACKED_MAX;
    while (slots > 1 && cell->slot[slots - 1] == QUT_SLOT_SAME)
        slots--;
    printf("{{%u, 0x%02x, %u, %u, {", cell->form, cell->flags, cell->reg, cell->aux);
    for (int i = 0; i < slots; i++)
        printf("%s%d", i ? "," : "", cell->slot[i]);
    printf("}, %d, %d}},", cell->cfa_words, cell->anchor_words);
}

static void print_rule(const struct rule *rule)
{
    static bool ends_line = true;
    if (rule->cell_count == 1) {
        ends_line = !ends_line;
        print_cell(&rule->cells->rule);
        printf("%s", ends_line ? "\n    " : " ");
        return;
    }
    printf("\n    {.rule = {.form = QUT_CELL_LONG}},");
    for (unsigned i = 1; i < rule->cell_count; i++) {
        printf("\n    {.bytes = {");
        for (unsigned byte = 0; byte < sizeof *rule->cells; byte++)
            printf("%s%u", byte ? ", " : "", rule->cells[i].bytes[byte]);
        printf("}},");
    }
}

static unsigned print(unsigned first, unsigned end, unsigned cells_left, bool is_long)
{
    unsigned printed = 0;
    for (unsigned i = first, rules_left = is_long ? LONG_MAX : RULES_MAX; i < end && rules_left; i++) {
        // A single table's rule may be its alone.
        if ((rules[i].cell_count > 1) != is_long || rules[i].cell_count + printed > cells_left || rules[i].tables < 2)
            continue;
        print_rule(&rules[i]);
        printed += rules[i].cell_count;
        rules_left--;
    }
    return printed;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const unsigned count_max = (unsigned)atoi(argv[2]) - 1 - LONG_MAX * QUT_LONG_CELLS;
    for (int i = 3; i < argc; i++) {
        struct qutc_table_file file;
        struct base_error error = {0};
        if (qutc_table_file_read(argv[i], &file, &error) != 0) {
            fprintf(stderr, "%s: %s\n", argv[i], error.detail);
            return 1;
        }
        count(&file.table, (unsigned)i);
        qutc_table_file_free(&file);
    }
    printf("// SPDX-License-Identifier: Apache-2.0\n"
           "// Made by tests/support/make_standard_cells of %d tables.\n"
           "#include \"formats/qut_standard_cells.h\"\n\n"
           "// clang-format off\n"
           "// {{enum qut_cell_form, flags, reg, aux, {ra, tracked...}, cfa_words, anchor_words}}: see qut_table.h\n"
           "const union qut_table_cell qut_standard_cells_%s[] = {\n    {.rule = {.form = QUT_CELL_HOLE}},\n    ",
           argc - 3, argv[1]);
    qsort(rules, rule_count, sizeof *rules, by_shares);
    const unsigned by_rows = rule_count < BY_ROWS ? rule_count : BY_ROWS;
    unsigned printed = print(0, by_rows, count_max, false);
    qsort(rules + by_rows, rule_count - by_rows, sizeof *rules, by_tables);
    printed += print(by_rows, rule_count, count_max - printed, false);
    qsort(rules, rule_count, sizeof *rules, by_tables);
    printed += print(0, rule_count, LONG_MAX * QUT_LONG_CELLS, true);
    printf("\n};\n");
    fprintf(stderr, "%s: %u cells, of %u rules\n", argv[1], printed + 1, rule_count);
    return 0;
}
