// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/draft.h"

#include <stdlib.h>
#include <string.h>

#include "qutc/table/cell.h"

// Bytes of text by kind, and whether every row starts on a unit.
static void survey(struct qutc_draft *draft, const struct qutc_rule_set *rules)
{
    const struct qutc_row *rows = draft->rows.rows;
    uint32_t text_size = (uint32_t)draft->text_size;
    uint64_t bytes[QUT_RULE_KIND_END] = {0};
    uint32_t counts[QUT_RULE_KIND_END] = {0};
    uint32_t low_bits = 0;
    for (size_t i = 0; i < draft->rows.count; i++) {
        uint32_t end = i + 1 < draft->rows.count ? rows[i + 1].pc_rel : text_size;
        unsigned kind = rules->rules[rows[i].rule_id].kind;
        bytes[kind] += end - rows[i].pc_rel;
        counts[kind]++;
        low_bits |= rows[i].pc_rel;
    }
    while (draft->pc_shift && (low_bits & ((1u << draft->pc_shift) - 1)))
        draft->pc_shift--;
    draft->row_count = (uint32_t)draft->rows.count;
    draft->refused_rows = counts[QUT_RULE_REFUSED];
    draft->hole_rows = counts[QUT_RULE_HOLE];
    draft->covered_bytes = bytes[QUT_RULE_FRAME];
    draft->refused_bytes = bytes[QUT_RULE_REFUSED];
}

int qutc_draft_init(struct qutc_draft *draft, const struct qut_arch *arch, uint64_t text_start, uint64_t text_end,
                    const struct qutc_rule_set *rules, struct qutc_row_list *rows, struct qutc_error *error)
{
    *draft = (struct qutc_draft){.arch = arch,
                                 .pc_shift = arch->pc_shift,
                                 .text_start = text_start,
                                 .text_size = text_end - text_start,
                                 .rows = *rows};
    *rows = (struct qutc_row_list){0};
    draft->symbol_capacity = rules->count + 64;
    draft->symbols = calloc(draft->symbol_capacity, sizeof *draft->symbols);
    if (!draft->symbols) {
        qutc_draft_free(draft);
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "rules");
    }
    for (uint32_t id = 0; id < rules->count; id++) {
        struct qutc_symbol *symbol = &draft->symbols[id];
        symbol->cell_count = qutc_cell_make(arch, &rules->rules[id], symbol->cells);
        symbol->rule_id = id;
    }
    draft->symbol_count = draft->rule_count = rules->count;
    survey(draft, rules);
    return 0;
}

void qutc_draft_free(struct qutc_draft *draft)
{
    qutc_row_list_free(&draft->rows);
    qutc_row_list_free(&draft->run_rows);
    free(draft->symbols);
    free(draft->runs);
    *draft = (struct qutc_draft){0};
}

uint32_t qutc_draft_copy_symbol(struct qutc_draft *draft, uint32_t symbol)
{
    if (draft->symbol_count == draft->symbol_capacity) {
        uint32_t capacity = draft->symbol_capacity * 2;
        struct qutc_symbol *symbols = realloc(draft->symbols, capacity * sizeof *symbols);
        if (!symbols)
            return UINT32_MAX;
        draft->symbols = symbols;
        draft->symbol_capacity = capacity;
    }
    draft->symbols[draft->symbol_count] = draft->symbols[symbol];
    return draft->symbol_count++;
}
