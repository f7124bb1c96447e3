// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/draft.h"

#include <stdlib.h>
#include <string.h>

#include "qutc/table/cell.h"

// What has no finer boundary is counted in units of so many bytes, also where instructions begin between them: the
// index of blocks, which is all there is of a few functions in a large text, is smaller for it.
enum { PC_SHIFT_MAX = 2 };

// So many rows at once: their holes are looked at while they are in the nearest cache.
enum { SURVEY_ROWS = 1024 };

// Bytes of text by kind, and whether every row starts on a unit. Counted per rule first, rows in the upper half and
// bytes (of a text below 4 GiB) in the lower: a million rows pass here, and sums per kind would wait for each other.
static int survey(struct table_draft *draft, const struct cfi_rule_set *rules)
{
    const uint64_t one_row = (uint64_t)1 << 32;
    struct table_padding *padding = &draft->padding;
    uint64_t *of_rule = calloc(rules->count, sizeof *of_rule);
    if (!of_rule || table_padding_init(padding, rules->count, draft->rows.count) != 0) {
        free(of_rule);
        return -1;
    }
    const struct cfi_row *rows = draft->rows.rows;
    const size_t last = draft->rows.count - 1;
    uint32_t low_bits = 0;
    for (size_t i = draft->first_row; i < last;) {
        const size_t first_hole = padding->count, end = last - i < SURVEY_ROWS ? last : i + SURVEY_ROWS;
        size_t hole_count = first_hole;
        for (; i < end; i++) {
            of_rule[rows[i].rule_id] += one_row + rows[i + 1].pc_rel - rows[i].pc_rel;
            low_bits |= rows[i].pc_rel;
            padding->holes[hole_count] = (uint32_t)i; // without a branch: holes come too irregularly to be predicted
            hole_count += rows[i].rule_id == CFI_RULE_HOLE_ID;
        }
        padding->count = hole_count;
        table_padding_count(padding, rows, first_hole);
    }
    of_rule[rows[last].rule_id] += one_row + draft->start_rel + draft->text_size - rows[last].pc_rel;
    low_bits |= rows[last].pc_rel;
    low_bits |= (uint32_t)draft->text_size; // where the last row ends

    while (draft->pc_shift && (low_bits & ((1u << draft->pc_shift) - 1)))
        draft->pc_shift--;
    uint64_t bytes[QUT_RULE_KIND_END] = {0}, counts[QUT_RULE_KIND_END] = {0};
    for (uint32_t id = 0; id < rules->count; id++) {
        bytes[rules->rules[id].kind] += (uint32_t)of_rule[id];
        counts[rules->rules[id].kind] += of_rule[id] >> 32;
        draft->rule_count += of_rule[id] && rules->rules[id].kind == QUT_RULE_FRAME;
        draft->symbols.items[id].uses = (uint32_t)(of_rule[id] >> 32);
    }
    draft->row_count = (uint32_t)(draft->rows.count - draft->first_row);
    draft->refused_rows = (uint32_t)counts[QUT_RULE_REFUSED];
    draft->hole_rows = (uint32_t)counts[QUT_RULE_HOLE];
    draft->covered_bytes = bytes[QUT_RULE_FRAME];
    draft->refused_bytes = bytes[QUT_RULE_REFUSED];
    free(of_rule);
    return 0;
}

// The table begins and ends with the code that is described: elsewhere is a hole by definition. An old-style binary
// maps its whole file executable, twice the size of its text. Where nothing is described, one unit of hole says so.
static void trim(struct table_draft *draft)
{
    const uint32_t granule = (uint32_t)QUT_BLOCK_UNITS << 2; // blocks begin at multiples of every padding alignment
    const struct cfi_row *rows = draft->rows.rows;
    size_t *count = &draft->rows.count;
    if (*count > 1 && rows[*count - 1].rule_id == CFI_RULE_HOLE_ID)
        draft->text_size = rows[--*count].pc_rel;
    else if (*count == 1 && rows[0].rule_id == CFI_RULE_HOLE_ID)
        draft->text_size = (rows[0].pc_rel | ((1u << PC_SHIFT_MAX) - 1)) + 1;
    draft->first_row = *count > 1 && rows[0].rule_id == CFI_RULE_HOLE_ID;
    draft->start_rel = rows[draft->first_row].pc_rel & ~(granule - 1);
    draft->text_start += draft->start_rel;
    draft->text_size -= draft->start_rel;
}

int table_draft_init(struct table_draft *draft, const struct arch *arch, uint64_t text_start, uint64_t text_end,
                     const struct cfi_rule_set *rules, struct cfi_row_list *rows, struct base_error *error)
{
    *draft = (struct table_draft){.arch = arch,
                                  .pc_shift = PC_SHIFT_MAX,
                                  .text_start = text_start,
                                  .text_size = text_end - text_start,
                                  .rows = *rows};
    *rows = (struct cfi_row_list){0};
    if (!BASE_RESERVE(&draft->symbols, rules->count + 64)) {
        table_draft_free(draft);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    }
    table_standard_init(&draft->standard, arch->id);
    for (uint32_t id = 0; id < rules->count; id++) {
        struct table_symbol *symbol = BASE_ADD(&draft->symbols);
        *symbol = (struct table_symbol){.rule_id = id};
        symbol->cell_count = table_cell_make(arch, &rules->rules[id], symbol->cells);
        symbol->standard = table_standard_find(&draft->standard, symbol->cells, symbol->cell_count);
    }
    trim(draft);
    if (survey(draft, rules) == 0)
        return 0;
    table_draft_free(draft);
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
}

void table_draft_free(struct table_draft *draft)
{
    cfi_row_list_free(&draft->rows);
    cfi_row_list_free(&draft->run_rows);
    table_padding_free(&draft->padding);
    base_vector_free(&draft->symbols.vector);
    free(draft->runs);
    *draft = (struct table_draft){0};
}

uint32_t table_draft_copy_symbol(struct table_draft *draft, uint32_t symbol)
{
    struct table_symbol *copy = BASE_ADD(&draft->symbols);
    if (!copy)
        return UINT32_MAX;
    *copy = draft->symbols.items[symbol];
    return (uint32_t)draft->symbols.count - 1;
}
