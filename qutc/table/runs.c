// SPDX-License-Identifier: Apache-2.0
// --small: prologues and epilogues are the same few sequences of rows again and again. A sequence that occurs often is
// stored once, as a run, and costs one row where it occurs.
//
// Which sequences: each block's rows are cut into pieces where nothing happens for a while; a piece that does not
// occur often enough is split at its widest gap, until it does or is a single row.
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "qutc/table/draft.h"

enum {
    GAP_MAX_UNITS = 40, // a wider gap always separates
    PIECE_ROWS_MAX = 24,
    ROUNDS_MAX = 24,
    RUN_ROW_BYTES = 2, // pc and code
    RUN_USE_BYTES = 3, // pc and a code of one or two bytes
    RUN_HEAD_BYTES = 5,
};

struct piece {
    uint32_t first;
    uint32_t count : 31;
    uint32_t kept : 1;
};

struct shape {
    uint64_t hash;
    uint32_t first; // an occurrence
    uint32_t count; // rows; 0: empty entry
    uint32_t uses;
    uint32_t run;
};

struct sharer {
    struct table_draft *draft;
    BASE_VECTOR(struct piece) pieces;
    struct shape *shapes; // open addressing
    size_t shape_slots;
};

static bool is_padded(const struct table_draft *draft, uint32_t symbol)
{
    const struct qut_rule_cell *cell = &draft->symbols.items[symbol].cells[0].rule;
    return cell->form != QUT_CELL_LONG && cell->flags >> QUT_CELL_ALIGN_SHIFT != QUT_CELL_NOT_PADDED;
}

static int add_piece(struct sharer *s, uint32_t first, uint32_t count)
{
    struct piece *piece = BASE_ADD(&s->pieces);
    if (!piece)
        return -1;
    *piece = (struct piece){.first = first, .count = count & 0x7fffffff};
    return 0;
}

// Pieces end at block ends, before wide gaps, and behind a padded rule: how far the next function's rows are from the
// padding depends on where it began, how far the padding is from the epilogue does not.
static int cut(struct sharer *s)
{
    const struct table_draft *draft = s->draft;
    const struct cfi_row *rows = draft->rows.rows;
    uint32_t block_bytes = (uint32_t)QUT_BLOCK_UNITS << draft->pc_shift;
    uint32_t gap_bytes = (uint32_t)GAP_MAX_UNITS << draft->pc_shift;
    for (size_t i = draft->first_row, first = i; i < draft->rows.count; i++) {
        bool ends =
            i + 1 == draft->rows.count || i + 1 - first == PIECE_ROWS_MAX || is_padded(draft, rows[i].rule_id) ||
            rows[i + 1].pc_rel - rows[i].pc_rel > gap_bytes ||
            (rows[i + 1].pc_rel - draft->start_rel) / block_bytes != (rows[i].pc_rel - draft->start_rel) / block_bytes;
        if (!ends)
            continue;
        if (add_piece(s, (uint32_t)first, (uint32_t)(i + 1 - first)) != 0)
            return -1;
        first = i + 1;
    }
    return 0;
}

static uint64_t hash_piece(const struct cfi_row *rows, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row = (uint64_t)(rows[i].pc_rel - rows[0].pc_rel) << 32 | rows[i].rule_id;
        hash = (hash ^ row) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 31;
    }
    return hash;
}

static bool same(const struct cfi_row *a, const struct cfi_row *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].rule_id != b[i].rule_id || a[i].pc_rel - a[0].pc_rel != b[i].pc_rel - b[0].pc_rel)
            return false;
    return true;
}

static struct shape *find_shape(const struct sharer *s, const struct piece *piece)
{
    const struct cfi_row *rows = s->draft->rows.rows;
    uint64_t hash = hash_piece(rows + piece->first, piece->count);
    size_t mask = s->shape_slots - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct shape *shape = &s->shapes[at];
        if (!shape->count) {
            *shape = (struct shape){.hash = hash, .first = piece->first, .count = piece->count};
            return shape;
        }
        if (shape->hash == hash && shape->count == piece->count &&
            same(rows + shape->first, rows + piece->first, piece->count))
            return shape;
    }
}

// A new table of shapes with the uses of all pieces.
static int count_shapes(struct sharer *s)
{
    size_t slots = 1024;
    while (slots < s->pieces.count * 2)
        slots *= 2;
    free(s->shapes);
    s->shapes = calloc(slots, sizeof *s->shapes);
    s->shape_slots = slots;
    if (!s->shapes)
        return -1;
    for (size_t i = 0; i < s->pieces.count; i++)
        if (s->pieces.items[i].count > 1)
            find_shape(s, &s->pieces.items[i])->uses++;
    return 0;
}

static bool pays(const struct shape *shape)
{
    int64_t saved = (int64_t)shape->uses * ((int64_t)shape->count * RUN_ROW_BYTES - RUN_USE_BYTES);
    return saved > RUN_HEAD_BYTES + (int64_t)shape->count * RUN_ROW_BYTES;
}

// The row of the piece that has the widest gap before it.
static uint32_t widest_gap(const struct cfi_row *rows, uint32_t count)
{
    uint32_t best = 1;
    for (uint32_t i = 2; i < count; i++)
        if (rows[i].pc_rel - rows[i - 1].pc_rel > rows[best].pc_rel - rows[best - 1].pc_rel)
            best = i;
    return best;
}

// Splits what does not pay. *split says whether anything was; a piece that pays never has to be split later, since its
// uses only grow.
static int split_pieces(struct sharer *s, bool *split)
{
    *split = false;
    size_t count = s->pieces.count;
    for (size_t i = 0; i < count; i++) {
        struct piece piece = s->pieces.items[i];
        if (piece.count < 2 || pays(find_shape(s, &piece)))
            continue;
        uint32_t left = widest_gap(s->draft->rows.rows + piece.first, piece.count);
        s->pieces.items[i].count = left & 0x7fffffff;
        if (add_piece(s, piece.first + left, piece.count - left) != 0)
            return -1;
        *split = true;
    }
    return 0;
}

static int by_first(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int make_run(struct table_draft *draft, struct shape *shape, struct base_error *error)
{
    if (cfi_row_list_reserve(&draft->run_rows, shape->count, error) != 0)
        return -1;
    shape->run = draft->run_count++;
    draft->runs[shape->run] = (struct table_run){.first = (uint32_t)draft->run_rows.count, .count = shape->count};
    memcpy(draft->run_rows.rows + draft->run_rows.count, draft->rows.rows + shape->first,
           shape->count * sizeof *draft->rows.rows);
    draft->run_rows.count += shape->count;
    return 0;
}

static int replace(struct sharer *s, struct base_error *error)
{
    struct table_draft *draft = s->draft;
    size_t run_capacity = 0;
    for (size_t i = 0; i < s->shape_slots; i++)
        run_capacity += s->shapes[i].count && pays(&s->shapes[i]);
    draft->runs = calloc(run_capacity + 1, sizeof *draft->runs);
    if (!draft->runs)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "runs");
    for (size_t i = 0; i < s->shape_slots; i++)
        if (s->shapes[i].count && pays(&s->shapes[i]) && make_run(draft, &s->shapes[i], error) != 0)
            return -1;
    qsort(s->pieces.items, s->pieces.count, sizeof *s->pieces.items, by_first);
    // A shape's rows are compared with those at its first occurrence: look all up before any row moves.
    uint32_t *runs = malloc((s->pieces.count + 1) * sizeof *runs);
    if (!runs)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "runs");
    for (size_t i = 0; i < s->pieces.count; i++) {
        struct shape *shape = s->pieces.items[i].count > 1 ? find_shape(s, &s->pieces.items[i]) : NULL;
        s->pieces.items[i].kept = shape && pays(shape);
        runs[i] = shape ? shape->run : 0;
    }
    struct cfi_row *rows = draft->rows.rows;
    size_t out = 0;
    for (size_t i = 0; i < s->pieces.count; i++) {
        struct piece piece = s->pieces.items[i];
        if (piece.kept) {
            rows[out++] = (struct cfi_row){rows[piece.first].pc_rel, TABLE_SYMBOL_RUN | runs[i]};
        } else {
            memmove(rows + out, rows + piece.first, piece.count * sizeof *rows);
            out += piece.count;
        }
    }
    free(runs);
    draft->rows.count = out;
    draft->first_row = 0;
    return 0;
}

// After rows went into runs.
static void count_uses(struct table_draft *draft)
{
    for (uint32_t i = 0; i < draft->symbols.count; i++)
        draft->symbols.items[i].uses = 0;
    for (size_t i = draft->first_row; i < draft->rows.count; i++) {
        uint32_t id = draft->rows.rows[i].rule_id;
        if (id & TABLE_SYMBOL_RUN)
            draft->runs[id & ~TABLE_SYMBOL_RUN].uses++;
        else
            draft->symbols.items[id].uses++;
    }
    for (size_t i = 0; i < draft->run_rows.count; i++)
        draft->symbols.items[draft->run_rows.rows[i].rule_id].uses++;
}

int table_draft_share_runs(struct table_draft *draft, struct base_error *error)
{
    struct sharer s = {.draft = draft};
    bool split = true;
    table_draft_settle(draft);
    int result = cut(&s);
    for (int round = 0; round < ROUNDS_MAX && split && result == 0; round++) {
        result = count_shapes(&s);
        if (result == 0)
            result = split_pieces(&s, &split);
    }
    if (result == 0)
        result = count_shapes(&s);
    result = result == 0 ? replace(&s, error) : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "runs");
    if (result == 0)
        count_uses(draft);
    base_vector_free(&s.pieces.vector);
    free(s.shapes);
    return result;
}
