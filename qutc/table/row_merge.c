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

// The rows of `list` in [from, end) that lie before the second list's next row, of which it has no rule until then.
static size_t copy_rows(struct cfi_row_list *out, const struct cfi_row_list *list, size_t from, size_t end,
                        uint32_t before)
{
    size_t behind = cfi_row_list_index(list, before - 1) + 1; // SIZE_MAX, before all, becomes 0
    behind = behind < end ? behind : end;
    size_t count = behind > from ? behind - from : 0;
    if (count)
        memcpy(out->rows + out->count, list->rows + from, count * sizeof *out->rows);
    out->count += count;
    return count;
}

int table_rows_fill_holes(struct cfi_row_list *first, const struct cfi_row_list *second, struct base_error *error)
{
    return table_rows_refine(first, second, NULL, NULL, error);
}

// Which rows of the first list the second one concerns: those from its first pc on, up to one behind its last pc. If
// most are, all are: they go into a new list, the others stay where they are.
struct window {
    size_t first, end;
};

static struct window concerned(const struct cfi_row_list *first, const struct cfi_row_list *second)
{
    const struct cfi_row *last = &second->rows[second->count - 1];
    struct window window = {0, first->count};
    if (second->rows[0].pc_rel)
        window.first = cfi_row_list_index(first, second->rows[0].pc_rel - 1) + 1; // SIZE_MAX, before all, becomes 0
    if (last->rule_id == CFI_RULE_HOLE_ID)                                        // else it holds up to the end
        window.end = cfi_row_list_index(first, last->pc_rel) + 1;
    window.end += window.end < first->count;
    return window.end - window.first > first->count / 2 ? (struct window){0, first->count} : window;
}

// Puts the rows of `out` in the place of the window's.
static int replace(struct cfi_row_list *first, struct window window, struct cfi_row_list *out, struct base_error *error)
{
    if (window.first == 0 && window.end == first->count) {
        struct cfi_row_list whole = *out;
        *out = *first;
        *first = whole;
        return 0;
    }
    if (cfi_row_list_reserve(first, out->count, error) != 0)
        return -1;
    struct cfi_row *rows = first->rows + window.first;
    memmove(rows + out->count, first->rows + window.end, (first->count - window.end) * sizeof *rows);
    memcpy(rows, out->rows, out->count * sizeof *rows);
    first->count += out->count - (window.end - window.first);
    return 0;
}

int table_rows_refine(struct cfi_row_list *first, const struct cfi_row_list *second, const struct cfi_rule_set *rules,
                      bool (*yields)(const struct qut_rule *rule), struct base_error *error)
{
    if (second->count == 0)
        return 0;
    struct window window = concerned(first, second);
    struct cfi_row_list out = {0};
    if (cfi_row_list_reserve(&out, window.end - window.first + second->count + 1, error) != 0)
        return -1;
    if (window.first) // what comes before decides what a row adds
        out.rows[out.count++] = first->rows[--window.first];
    size_t a = window.first + out.count, b = 0;
    uint32_t rule_a = out.count ? out.rows[0].rule_id : (uint32_t)CFI_RULE_HOLE_ID, rule_b = CFI_RULE_HOLE_ID;
    while (a < window.end || b < second->count) {
        bool take_a = b == second->count || (a < window.end && first->rows[a].pc_rel <= second->rows[b].pc_rel);
        bool take_b = a == window.end || (b < second->count && second->rows[b].pc_rel <= first->rows[a].pc_rel);
        uint32_t pc_rel = take_a ? first->rows[a].pc_rel : second->rows[b].pc_rel;
        if (take_a)
            rule_a = first->rows[a++].rule_id;
        if (take_b)
            rule_b = second->rows[b++].rule_id;
        bool from_a = rule_a != CFI_RULE_HOLE_ID;
        if (yields && from_a && rule_b != CFI_RULE_HOLE_ID)
            from_a = !yields(&rules->rules[rule_a]);
        append(&out, pc_rel, from_a ? rule_a : rule_b, from_a ? take_a : take_b);
        if (take_a && rule_b == CFI_RULE_HOLE_ID && a < window.end) { // as it is
            a += copy_rows(&out, first, a, window.end, b < second->count ? second->rows[b].pc_rel : UINT32_MAX);
            rule_a = first->rows[a - 1].rule_id;
        }
    }
    int result = replace(first, window, &out, error);
    cfi_row_list_free(&out);
    return result;
}
