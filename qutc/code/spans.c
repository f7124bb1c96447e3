// SPDX-License-Identifier: Apache-2.0
// Instructions with a rule, as functions that were followed leave them: several may share code.
#include <stdlib.h>
#include <string.h>

#include "qutc/code/inside.h"

static int by_pc(const void *a, const void *b)
{
    const struct code_span *x = a, *y = b;
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

// What was sorted before is so again: only what was appended since is sorted, and merged from behind.
bool code_sort_spans(struct code_follower *f)
{
    struct code_span *spans = f->spans.items;
    size_t count = f->spans.count, sorted = count != 0;
    while (sorted < count && by_pc(&spans[sorted - 1], &spans[sorted]) <= 0)
        sorted++;
    const size_t more = count - sorted;
    struct code_span *appended = more ? malloc(more * sizeof *appended) : NULL;
    if (!more || !appended)
        return !more;
    memcpy(appended, &spans[sorted], more * sizeof *appended);
    qsort(appended, more, sizeof *appended, by_pc);
    for (size_t i = more; i > 0; count--) {
        const bool is_appended = sorted == 0 || by_pc(&spans[sorted - 1], &appended[i - 1]) <= 0;
        spans[count - 1] = is_appended ? appended[--i] : spans[--sorted];
    }
    free(appended);
    return true;
}

uint64_t code_own_bytes(struct code_follower *f, size_t first, size_t end)
{
    uint64_t bytes = 0, entered = UINT64_MAX;
    if (end > first)
        qsort(&f->spans.items[first], end - first, sizeof *f->spans.items, by_pc);
    for (size_t i = first; i < end; i++) {
        const struct code_span *span = &f->spans.items[i];
        uint32_t start = code_start_at_most(f, span->pc);
        const struct code_function *function = code_function_at(f, start);
        if (span->pc == start && function && function->is_followed)
            entered = start;
        if (start != entered)
            bytes += span->end - span->pc;
    }
    return bytes;
}

bool code_has_start(const struct code_follower *f, size_t first, size_t end, uint32_t pc)
{
    bool found = false;
    for (size_t i = first; i < end && !found; i++) {
        const struct code_span *span = &f->spans.items[i];
        bool is_own = span->pc == pc || span->pc == 0;
        found = code_next_start(f, is_own ? span->pc : span->pc - 1) < span->end;
    }
    return found;
}

// Of [pc, end), which one or more spans hold: their rule, if it is one.
static uint32_t rule_of(const struct code_span *spans, size_t count, uint32_t pc)
{
    uint32_t rule_id = CFI_RULE_HOLE_ID;
    bool has_rule = false;
    for (size_t i = 0; i < count; i++) {
        if (pc < spans[i].pc || pc >= spans[i].end)
            continue;
        if (has_rule && spans[i].rule_id != rule_id)
            return CFI_RULE_HOLE_ID; // code of two functions that disagree
        rule_id = spans[i].rule_id;
        has_rule = true;
    }
    return rule_id;
}

static uint32_t next_edge(const struct code_span *spans, size_t count, uint32_t pc, uint32_t end)
{
    for (size_t i = 0; i < count; i++) {
        if (spans[i].pc > pc && spans[i].pc < end)
            end = spans[i].pc;
        if (spans[i].end > pc && spans[i].end < end)
            end = spans[i].end;
    }
    return end;
}

int code_spans_to_rows(struct code_follower *f, struct cfi_row_list *rows)
{
    if (!code_sort_spans(f))
        return base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    if (cfi_row_list_reserve(rows, 4 * f->spans.count + 1, f->error) != 0)
        return -1;
    const struct code_span *spans = f->spans.items;
    for (size_t first = 0; first < f->spans.count;) {
        uint32_t end = spans[first].end;
        size_t count = 1;
        for (; first + count < f->spans.count && spans[first + count].pc < end; count++)
            end = spans[first + count].end > end ? spans[first + count].end : end;
        for (uint32_t pc = spans[first].pc; pc < end;) {
            uint32_t edge = next_edge(&spans[first], count, pc, end);
            if (cfi_row_list_reserve(rows, 2, f->error) != 0)
                return -1;
            cfi_row_list_put(rows, pc, rule_of(&spans[first], count, pc));
            pc = edge;
        }
        cfi_row_list_put(rows, end, CFI_RULE_HOLE_ID);
        first += count;
    }
    return 0;
}
