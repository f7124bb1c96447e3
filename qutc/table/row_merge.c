// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/row_merge.h"

#include <string.h>

// Function-level rows keep a boundary between two functions with one rule, so an equal neighbour is kept where the row
// comes from one list as it is.
static void append(struct cfi_row_list *out, uint32_t pc_rel, uint32_t rule_id, bool starts_row)
{
    if (starts_row && rule_id != CFI_RULE_HOLE_ID) {
        if (out->count && out->rows[out->count - 1].pc_rel == pc_rel)
            out->count--;
        out->rows[out->count++] = (struct cfi_row){pc_rel, rule_id};
    } else {
        cfi_row_list_put(out, pc_rel, rule_id);
    }
}

// The rows of `list` from `from` on that lie before the second list's next row, of which it has no rule until then.
static size_t copy_rows(struct cfi_row_list *out, const struct cfi_row_list *list, size_t from, uint32_t before)
{
    size_t last = cfi_row_list_index(list, before - 1), count = last != SIZE_MAX && last >= from ? last + 1 - from : 0;
    if (count)
        memcpy(out->rows + out->count, list->rows + from, count * sizeof *out->rows);
    out->count += count;
    return count;
}

int table_rows_fill_holes(struct cfi_row_list *first, const struct cfi_row_list *second, struct base_error *error)
{
    return table_rows_refine(first, second, NULL, NULL, error);
}

int table_rows_refine(struct cfi_row_list *first, const struct cfi_row_list *second, const struct cfi_rule_set *rules,
                      bool (*yields)(const struct qut_rule *rule), struct base_error *error)
{
    if (second->count == 0)
        return 0;
    struct cfi_row_list out = {0};
    if (cfi_row_list_reserve(&out, first->count * 2 + second->count * 2, error) != 0)
        return -1;
    size_t a = 0, b = 0;
    uint32_t rule_a = CFI_RULE_HOLE_ID, rule_b = CFI_RULE_HOLE_ID;
    while (a < first->count || b < second->count) {
        bool take_a = b == second->count || (a < first->count && first->rows[a].pc_rel <= second->rows[b].pc_rel);
        bool take_b = a == first->count || (b < second->count && second->rows[b].pc_rel <= first->rows[a].pc_rel);
        uint32_t pc_rel = take_a ? first->rows[a].pc_rel : second->rows[b].pc_rel;
        if (take_a)
            rule_a = first->rows[a++].rule_id;
        if (take_b)
            rule_b = second->rows[b++].rule_id;
        bool from_a = rule_a != CFI_RULE_HOLE_ID;
        if (yields && from_a && rule_b != CFI_RULE_HOLE_ID)
            from_a = !yields(&rules->rules[rule_a]);
        append(&out, pc_rel, from_a ? rule_a : rule_b, from_a ? take_a : take_b);
        if (take_a && rule_b == CFI_RULE_HOLE_ID && a < first->count) { // as it is
            a += copy_rows(&out, first, a, b < second->count ? second->rows[b].pc_rel : UINT32_MAX);
            rule_a = first->rows[a - 1].rule_id;
        }
    }
    cfi_row_list_free(first);
    *first = out;
    return 0;
}
