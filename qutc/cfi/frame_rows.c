// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_program.h"

#include <stdlib.h>

enum { PREFETCH = 4 }; // FDEs ahead

struct builder {
    struct cfi_program_runner runner;
    struct cfi_frame_records records;
    uint64_t text_start;
    struct cfi_row_list *rows;
    struct base_error *error;
};

static int run_fde(struct builder *b, const struct cfi_fde *fde, struct cfi_row_list *rows)
{
    return cfi_program_run(&b->runner, &b->records.cies.items[fde->cie], fde, b->text_start, rows, b->error);
}

// An FDE whose rows wait until the inner FDEs on top of it are done.
struct open_fde {
    struct cfi_row_list rows;
    size_t next; // first row not below the position reached
    uint32_t end_rel;
};

struct nest {
    BASE_VECTOR(struct open_fde); // the innermost one last
};

// Writes the innermost FDE's rows from `from` up to `to`, and leaves the rule in force there for what follows.
static int emit(struct builder *b, struct open_fde *top, uint32_t from, uint32_t to)
{
    const struct cfi_row *rows = top->rows.rows;
    while (top->next < top->rows.count && rows[top->next].pc_rel <= from)
        top->next++;
    size_t last = top->next;
    while (last < top->rows.count && rows[last].pc_rel < to)
        last++;
    if (cfi_row_list_reserve(b->rows, last - top->next + 2, b->error) != 0)
        return -1;
    cfi_row_list_put(b->rows, from, rows[top->next - 1].rule_id);
    for (; top->next < last; top->next++)
        cfi_row_list_put(b->rows, rows[top->next].pc_rel, rows[top->next].rule_id);
    return 0;
}

// Moves on from *at to `to`, through whatever is innermost on the way.
static int advance(struct builder *b, struct nest *nest, uint32_t *at, uint32_t to)
{
    while (*at < to && nest->count) {
        struct open_fde *top = &nest->items[nest->count - 1];
        uint32_t stop = top->end_rel < to ? top->end_rel : to;
        if (*at < stop) {
            if (emit(b, top, *at, stop) != 0)
                return -1;
            *at = stop;
        }
        if (top->end_rel > *at)
            break;
        cfi_row_list_free(&top->rows);
        nest->count--;
    }
    if (*at < to) {
        if (cfi_row_list_reserve(b->rows, 1, b->error) != 0)
            return -1;
        cfi_row_list_put(b->rows, *at, CFI_RULE_HOLE_ID);
        *at = to;
    }
    return 0;
}

static int push(struct builder *b, struct nest *nest, const struct cfi_fde *fde)
{
    struct open_fde *top = BASE_ADD(nest);
    if (!top)
        return base_fail(b->error, BASE_ERR_NO_MEMORY, "", 0, "overlapping FDEs");
    *top = (struct open_fde){.end_rel = fde->end_rel};
    return run_fde(b, fde, &top->rows);
}

// FDEs [first, last) overlap each other, up to end_rel in all. Every program runs once; every row is written once, but
// for those where an inner FDE begins or ends.
static int run_overlapping(struct builder *b, size_t first, size_t last, uint32_t end_rel)
{
    struct nest nest = {0};
    uint32_t at = cfi_fde_at(&b->records, first)->start_rel;
    int result = 0;
    for (size_t i = first; i < last && result == 0; i++) {
        const struct cfi_fde *fde = cfi_fde_at(&b->records, i);
        result = advance(b, &nest, &at, fde->start_rel);
        if (result == 0)
            result = push(b, &nest, fde);
    }
    if (result == 0)
        result = advance(b, &nest, &at, end_rel);
    if (result == 0)
        result = cfi_row_list_reserve(b->rows, 1, b->error);
    if (result == 0)
        cfi_row_list_put(b->rows, end_rel, CFI_RULE_HOLE_ID);
    while (nest.count)
        cfi_row_list_free(&nest.items[--nest.count].rows);
    base_vector_free(&nest.vector);
    return result;
}

// Every row costs at least one byte of program: the bound is a reservation of addresses, not of memory.
static int reserve_rows(struct builder *b)
{
    size_t row_bound = 0;
    for (size_t i = 0; i < b->records.fde_count; i++)
        row_bound += (size_t)b->records.fdes[i].program_size + 2;
    return cfi_row_list_reserve(b->rows, row_bound, b->error);
}

static int run_all(struct builder *b, struct cfi_frame_counts *counts)
{
    if (reserve_rows(b) != 0)
        return -1;
    for (size_t i = 0; i < b->records.fde_count;) {
        const struct cfi_fde *fde = cfi_fde_at(&b->records, i);
        if (i + PREFETCH < b->records.fde_count) // sorted by address, the programs lie anywhere in the section
            __builtin_prefetch(cfi_fde_at(&b->records, i + PREFETCH)->program);
        uint32_t end_rel = fde->end_rel;
        size_t next = i + 1;
        for (; next < b->records.fde_count; next++) {
            const struct cfi_fde *other = cfi_fde_at(&b->records, next);
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

int cfi_frame_rows_read(const struct input_image *image, const struct input_frame_section *section, uint64_t text_start,
                        uint64_t text_end, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                        struct cfi_frame_counts *counts, struct base_error *error)
{
    struct builder b = {.text_start = text_start, .rows = rows, .error = error};
    *counts = (struct cfi_frame_counts){0};
    if (cfi_frame_records_read(image, section, text_start, text_end, &b.records, error) != 0)
        return -1;
    int result = cfi_program_runner_init(&b.runner, image->arch, rules, error);
    if (result == 0) {
        result = run_all(&b, counts);
        counts->fdes = b.records.fde_count;
        counts->cies = b.records.cies.count;
        counts->rows = b.runner.row_count;
        counts->skipped = b.records.skipped;
        counts->outside_text = b.records.outside_text;
        counts->first_skipped = b.records.first_skipped;
        cfi_program_runner_free(&b.runner);
    }
    cfi_frame_records_free(&b.records);
    return result;
}
