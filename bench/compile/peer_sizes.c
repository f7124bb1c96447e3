// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/peer_sizes.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/arch/arch.h"

enum {
    PADDING_MAX_BYTES = 15,
    FP_REG = 6, // rbp and rsp, DWARF numbers
    SP_REG = 7,
    SFRAME_HEADER_BYTES = 28,
    SFRAME_V1_FUNCTION_BYTES = 17,
    SFRAME_V2_FUNCTION_BYTES = 20,
    ORC_ROW_BYTES = 10,
    OTEL_ROW_BYTES = 4,
    OTEL_PAGE_SHIFT = 16,
    OTEL_PAGE_BYTES = 24,
    OTEL_RULE_BYTES = 12,
};

// As much of a rule as the peers keep. All zero: no rule.
struct small_rule {
    uint32_t is_frame;
    struct qut_cfa cfa;
    struct qut_reg_rule ra, fp;
    uint32_t merge; // OTel: the joined row that follows, as its opcode
};

struct small_row {
    uint64_t start, end;
    struct small_rule rule;
};

struct small_rows {
    struct small_row *items;
    size_t count, capacity;
};

static bool same_rule(const struct small_rule *a, const struct small_rule *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static int add_row(struct small_rows *rows, uint64_t start, uint64_t end, const struct small_rule *rule,
                   struct base_error *error)
{
    if (rows->count && rows->items[rows->count - 1].end == start &&
        same_rule(&rows->items[rows->count - 1].rule, rule)) {
        rows->items[rows->count - 1].end = end;
        return 0;
    }
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? 2 * rows->capacity : 1024;
        struct small_row *items = realloc(rows->items, capacity * sizeof *items);
        if (!items)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rows of peers");
        rows->items = items;
        rows->capacity = capacity;
    }
    rows->items[rows->count++] = (struct small_row){start, end, *rule};
    return 0;
}

static int take_rows(const struct qut_table *table, struct small_rows *rows, struct base_error *error)
{
    int fp_slot = arch_slot(&arch_x86_64, FP_REG);
    uint64_t pc = table->text_start, end;
    struct qut_rule rule;
    while (runtime_table_next_row(table, &pc, &end, &rule)) {
        struct small_rule small;
        memset(&small, 0, sizeof small);
        if (rule.kind == QUT_RULE_FRAME) {
            small.is_frame = 1;
            small.cfa = rule.cfa;
            small.ra = rule.ra;
            small.fp = rule.tracked[fp_slot];
        }
        if (add_row(rows, pc, end, &small, error) != 0)
            return -1;
        pc = end;
    }
    return 0;
}

// What remains when padding goes to the row before it. In place.
static void join_padding(struct small_rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct small_row row = rows->items[i];
        struct small_row *before = kept ? &rows->items[kept - 1] : NULL;
        if (!row.rule.is_frame && (!before || row.end - row.start <= PADDING_MAX_BYTES)) {
            if (before)
                before->end = row.end;
        } else if (before && same_rule(&before->rule, &row.rule)) {
            before->end = row.end;
        } else {
            rows->items[kept++] = row;
        }
    }
    rows->count = kept;
}

static unsigned offset_bytes(int64_t offset)
{
    return offset >= INT8_MIN && offset <= INT8_MAX ? 1 : offset >= INT16_MIN && offset <= INT16_MAX ? 2 : 4;
}

// Rows that SFrame cannot express are counted as the shortest it has: its producers leave out the whole function.
static uint64_t sframe_row_bytes(const struct small_rule *rule, uint64_t function_bytes)
{
    unsigned start_bytes = function_bytes < 1u << 8 ? 1 : function_bytes < 1u << 16 ? 2 : 4;
    bool plain = rule->cfa.how == QUT_CFA_REG && (rule->cfa.reg == FP_REG || rule->cfa.reg == SP_REG);
    unsigned offset_count = 1, width = plain ? offset_bytes(rule->cfa.offset_bytes) : 1;
    if (rule->fp.how == QUT_REG_AT_CFA) {
        unsigned fp_width = offset_bytes(rule->fp.offset_bytes);
        offset_count = 2;
        width = fp_width > width ? fp_width : width;
    }
    return start_bytes + 1 + (uint64_t)offset_count * width;
}

// Before padding is joined: a function's rows end with it.
static uint64_t sframe_rows_bytes(const struct small_rows *rows, const struct check_walk_index *functions)
{
    uint64_t bytes = 0;
    size_t at = 0;
    for (size_t i = 0; i < functions->fdes.count; i++) {
        const struct check_walk_fde *fde = &functions->fdes.items[i];
        while (at < rows->count && rows->items[at].end <= fde->start)
            at++;
        for (size_t row = at; row < rows->count && rows->items[row].start < fde->end; row++)
            if (rows->items[row].rule.is_frame)
                bytes += sframe_row_bytes(&rows->items[row].rule, fde->end - fde->start);
    }
    return bytes;
}

static int compare_rules(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct small_rule));
}

static uint64_t count_rules(const struct small_row *rows, size_t count, struct small_rule *scratch)
{
    for (size_t i = 0; i < count; i++)
        scratch[i] = rows[i].rule;
    qsort(scratch, count, sizeof *scratch, compare_rules);
    uint64_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        distinct += scratch[i].is_frame && (i == 0 || !same_rule(&scratch[i - 1], &scratch[i]));
    return distinct;
}

// calculateMergeOpcode of opentelemetry-ebpf-profiler: the next row is 1 or 2 bytes on and moves the CFA by a word.
static uint32_t merge_opcode(const struct small_row *row, const struct small_row *next)
{
    uint64_t distance_bytes = next->start - row->start;
    int64_t step_bytes = (int64_t)next->rule.cfa.offset_bytes - row->rule.cfa.offset_bytes;
    struct small_rule moved = next->rule;
    moved.cfa.offset_bytes = row->rule.cfa.offset_bytes;
    if (!row->rule.is_frame || row->rule.cfa.how != QUT_CFA_REG || distance_bytes < 1 || distance_bytes > 2 ||
        (step_bytes != 8 && step_bytes != -8) || !same_rule(&row->rule, &moved))
        return 0;
    return (uint32_t)distance_bytes | (step_bytes < 0 ? 0x80u : 0);
}

static uint64_t otel_bytes(uint64_t rows, uint64_t pages, uint64_t rules)
{
    return rows * OTEL_ROW_BYTES + pages * OTEL_PAGE_BYTES + rules * OTEL_RULE_BYTES;
}

static int size_otel(struct small_rows *rows, struct peer_sizes *sizes, struct base_error *error)
{
    if (!rows->count)
        return 0;
    struct small_rule *scratch = malloc(rows->count * sizeof *scratch);
    if (!scratch)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules of peers");
    uint64_t first_page = rows->items[0].start >> OTEL_PAGE_SHIFT;
    uint64_t pages = (rows->items[rows->count - 1].start >> OTEL_PAGE_SHIFT) - first_page + 1;
    sizes->otel = otel_bytes(rows->count, pages, count_rules(rows->items, rows->count, scratch));
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct small_row row = rows->items[i];
        if (i + 1 < rows->count && (row.rule.merge = merge_opcode(&row, &rows->items[i + 1])) != 0)
            i++;
        rows->items[kept++] = row;
    }
    sizes->otel_merged = otel_bytes(kept, pages, count_rules(rows->items, kept, scratch));
    free(scratch);
    return 0;
}

int bench_peer_sizes(const struct qut_table *table, const struct check_walk_index *functions, struct peer_sizes *sizes,
                     struct base_error *error)
{
    struct small_rows rows = {0};
    *sizes = (struct peer_sizes){0};
    int result = take_rows(table, &rows, error);
    if (result == 0) {
        uint64_t row_bytes = SFRAME_HEADER_BYTES + sframe_rows_bytes(&rows, functions);
        sizes->sframe_v1 = row_bytes + functions->fdes.count * SFRAME_V1_FUNCTION_BYTES;
        sizes->sframe_v2 = row_bytes + functions->fdes.count * SFRAME_V2_FUNCTION_BYTES;
        join_padding(&rows);
        sizes->rows = rows.count;
        sizes->orc = rows.count * ORC_ROW_BYTES;
        result = size_otel(&rows, sizes, error);
    }
    free(rows.items);
    return result;
}
