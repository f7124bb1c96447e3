// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_rows.h"

#include <stdlib.h>

enum { PREFETCH = 4 }; // FDEs ahead

struct builder {
    struct qutc_program_runner runner;
    struct qutc_frame_records records;
    uint64_t text_start;
    struct qutc_row_list *rows;
    struct qutc_error *error;
};

static int run_fde(struct builder *b, const struct qutc_fde *fde, struct qutc_row_list *rows)
{
    return qutc_program_run(&b->runner, &b->records.cies[fde->cie], fde, b->text_start, rows, b->error);
}

// An FDE whose rows wait until the inner FDEs on top of it are done.
struct open_fde {
    struct qutc_row_list rows;
    size_t next; // first row not below the position reached
    uint32_t end_rel;
};

struct nest {
    struct open_fde *open;
    size_t depth;
    size_t capacity;
};

// Writes the innermost FDE's rows from `from` up to `to`, and leaves the rule in force there for whoever follows.
static int emit(struct builder *b, struct open_fde *top, uint32_t from, uint32_t to)
{
    const struct qutc_row *rows = top->rows.rows;
    while (top->next < top->rows.count && rows[top->next].pc_rel <= from)
        top->next++;
    size_t last = top->next;
    while (last < top->rows.count && rows[last].pc_rel < to)
        last++;
    if (qutc_row_list_reserve(b->rows, last - top->next + 2, b->error) != 0)
        return -1;
    qutc_row_list_put(b->rows, from, rows[top->next - 1].rule_id);
    for (; top->next < last; top->next++)
        qutc_row_list_put(b->rows, rows[top->next].pc_rel, rows[top->next].rule_id);
    return 0;
}

// Moves on from *at to `to`, through whatever is innermost on the way.
static int advance(struct builder *b, struct nest *nest, uint32_t *at, uint32_t to)
{
    while (*at < to && nest->depth) {
        struct open_fde *top = &nest->open[nest->depth - 1];
        uint32_t stop = top->end_rel < to ? top->end_rel : to;
        if (*at < stop) {
            if (emit(b, top, *at, stop) != 0)
                return -1;
            *at = stop;
        }
        if (top->end_rel > *at)
            break;
        qutc_row_list_free(&top->rows);
        nest->depth--;
    }
    if (*at < to) {
        if (qutc_row_list_reserve(b->rows, 1, b->error) != 0)
            return -1;
        qutc_row_list_put(b->rows, *at, QUTC_RULE_HOLE_ID);
        *at = to;
    }
    return 0;
}

static int push(struct builder *b, struct nest *nest, const struct qutc_fde *fde)
{
    if (nest->depth == nest->capacity) {
        size_t capacity = nest->capacity ? nest->capacity * 2 : 16;
        struct open_fde *open = realloc(nest->open, capacity * sizeof *open);
        if (!open)
            return qutc_fail(b->error, QUTC_ERR_NO_MEMORY, "", 0, "overlapping FDEs");
        nest->open = open;
        nest->capacity = capacity;
    }
    struct open_fde *top = &nest->open[nest->depth];
    *top = (struct open_fde){.end_rel = fde->end_rel};
    if (run_fde(b, fde, &top->rows) != 0) {
        qutc_row_list_free(&top->rows);
        return -1;
    }
    nest->depth++;
    return 0;
}

// FDEs [first, last) overlap each other, up to end_rel in all. Every program runs once; every row is written once, but
// for those where an inner FDE begins or ends.
static int run_overlapping(struct builder *b, size_t first, size_t last, uint32_t end_rel)
{
    struct nest nest = {0};
    uint32_t at = qutc_fde_at(&b->records, first)->start_rel;
    int result = 0;
    for (size_t i = first; i < last && result == 0; i++) {
        const struct qutc_fde *fde = qutc_fde_at(&b->records, i);
        result = advance(b, &nest, &at, fde->start_rel);
        if (result == 0)
            result = push(b, &nest, fde);
    }
    if (result == 0)
        result = advance(b, &nest, &at, end_rel);
    if (result == 0)
        result = qutc_row_list_reserve(b->rows, 1, b->error);
    if (result == 0)
        qutc_row_list_put(b->rows, end_rel, QUTC_RULE_HOLE_ID);
    while (nest.depth)
        qutc_row_list_free(&nest.open[--nest.depth].rows);
    free(nest.open);
    return result;
}

// Every row costs at least one byte of program: the bound is a reservation of addresses, not of memory.
static int reserve_rows(struct builder *b)
{
    size_t row_bound = 0;
    for (size_t i = 0; i < b->records.fde_count; i++)
        row_bound += (size_t)b->records.fdes[i].program_size + 2;
    return qutc_row_list_reserve(b->rows, row_bound, b->error);
}

static int run_all(struct builder *b, struct qutc_frame_counts *counts)
{
    if (reserve_rows(b) != 0)
        return -1;
    for (size_t i = 0; i < b->records.fde_count;) {
        const struct qutc_fde *fde = qutc_fde_at(&b->records, i);
        if (i + PREFETCH < b->records.fde_count) // sorted by address, the programs lie anywhere in the section
            __builtin_prefetch(qutc_fde_at(&b->records, i + PREFETCH)->program);
        uint32_t end_rel = fde->end_rel;
        size_t next = i + 1;
        for (; next < b->records.fde_count; next++) {
            const struct qutc_fde *other = qutc_fde_at(&b->records, next);
            if (other->start_rel >= end_rel)
                break;
            if (other->end_rel > end_rel)
                end_rel = other->end_rel;
        }
        counts->overlaps += next - i - 1;
        int result = next == i + 1 ? run_fde(b, fde, b->rows) : run_overlapping(b, i, next, end_rel);
        if (result != 0)
            return -1;
        i = next;
    }
    return 0;
}

int qutc_frame_rows_read(const struct qutc_image *image, const struct qutc_frame_section *section, uint64_t text_start,
                         uint64_t text_end, struct qutc_rule_set *rules, struct qutc_row_list *rows,
                         struct qutc_frame_counts *counts, struct qutc_error *error)
{
    struct builder b = {.text_start = text_start, .rows = rows, .error = error};
    *counts = (struct qutc_frame_counts){0};
    if (qutc_frame_records_read(image, section, text_start, text_end, &b.records, error) != 0)
        return -1;
    int result = qutc_program_runner_init(&b.runner, image->arch, rules, error);
    if (result == 0) {
        result = run_all(&b, counts);
        counts->fdes = b.records.fde_count;
        counts->cies = b.records.cie_count;
        counts->rows = b.runner.row_count;
        counts->skipped = b.records.skipped;
        counts->outside_text = b.records.outside_text;
        counts->first_skipped = b.records.first_skipped;
        qutc_program_runner_free(&b.runner);
    }
    qutc_frame_records_free(&b.records);
    return result;
}
