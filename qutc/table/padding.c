// SPDX-License-Identifier: Apache-2.0
// Between most functions lie a few bytes of padding. Stated plainly they are a row of their own: a tenth to a third of
// all rows, by library. Since the next function begins at the next multiple of 16, 32 or 64, one row can say both.
#include <stdlib.h>
#include <string.h>

#include "qutc/table/cell.h"
#include "qutc/table/draft.h"

// A variant of a rule saves a row of two bytes for each use, and costs a cell of 16 bytes where no standard one says
// it.
enum { USES_MIN = 9, NO_VARIANT = CFI_RULE_HOLE_ID, ALIGNS = QUT_CELL_ALIGN_64 + 1 };

// The smallest alignment at which padding of `distance` bytes, fewer than 64, ends exactly at `start`: that of which so
// much is no whole step. What does not begin at a multiple of it begins at none of a larger one.
static inline enum qut_cell_align alignment_of(uint32_t distance, uint32_t start)
{
    const unsigned align = QUT_CELL_ALIGN_16 + (unsigned)(distance >= 16) + (unsigned)(distance >= 32);
    return start & ((8u << align) - 1) ? QUT_CELL_NOT_PADDED : (enum qut_cell_align)align;
}

int table_padding_init(struct table_padding *padding, size_t rule_count, size_t row_count)
{
    padding->holes = malloc(row_count * sizeof *padding->holes);
    padding->aligns = malloc(row_count);
    padding->variants = calloc(rule_count * ALIGNS, sizeof *padding->variants);
    return padding->holes && padding->aligns && padding->variants ? 0 : -1;
}

void table_padding_free(struct table_padding *padding)
{
    free(padding->holes);
    free(padding->aligns);
    free(padding->variants);
    *padding = (struct table_padding){0};
}

void table_padding_count(struct table_padding *padding, const struct cfi_row *rows, size_t first)
{
    for (size_t i = first; i < padding->count; i++) {
        const struct cfi_row *hole = &rows[padding->holes[i]];
        const uint32_t distance = hole[1].pc_rel - hole->pc_rel;
        padding->aligns[i] = (uint8_t)(distance < 64 ? alignment_of(distance, hole[1].pc_rel) : QUT_CELL_NOT_PADDED);
        padding->variants[hole[1].rule_id * ALIGNS + padding->aligns[i]]++;
    }
}

static bool can_be_padded(const struct table_symbol *symbol)
{
    const uint8_t form = symbol->cells[0].rule.form;
    return form == QUT_CELL_FRAME || form == QUT_CELL_DEREF;
}

// A variant of the rule for `uses` holes in front of it, where it is worth its cell. False without memory.
static bool make_variant(struct table_draft *draft, uint32_t rule, enum qut_cell_align align, uint32_t uses,
                         uint32_t *variant)
{
    union qut_table_cell padded = draft->symbols.items[rule].cells[0];
    padded.rule.flags = table_cell_padded(padded.rule.flags, align);
    const uint16_t standard = table_standard_find(&draft->standard, &padded, 1);
    if (standard == TABLE_STANDARD_NONE && uses < USES_MIN)
        return true;
    *variant = table_draft_copy_symbol(draft, rule);
    if (*variant == UINT32_MAX)
        return false;
    struct table_symbol *symbols = draft->symbols.items;
    symbols[*variant].cells[0] = padded;
    symbols[*variant].standard = standard;
    symbols[*variant].uses = uses;
    symbols[rule].uses -= uses;
    symbols[CFI_RULE_HOLE_ID].uses -= uses;
    draft->padding.joined += uses;
    return true;
}

int table_draft_join_padding(struct table_draft *draft, struct base_error *error)
{
    const uint32_t rule_count = (uint32_t)draft->symbols.count;
    for (uint32_t rule = 0; rule < rule_count; rule++) {
        uint32_t *variants = &draft->padding.variants[rule * ALIGNS]; // uses first, then symbols
        const bool can_be = can_be_padded(&draft->symbols.items[rule]);
        variants[QUT_CELL_NOT_PADDED] = NO_VARIANT;
        for (unsigned align = QUT_CELL_ALIGN_16; align < ALIGNS; align++) {
            const uint32_t uses = variants[align];
            variants[align] = NO_VARIANT;
            if (can_be && uses && !make_variant(draft, rule, (enum qut_cell_align)align, uses, &variants[align]))
                return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "padding");
        }
    }
    return 0;
}

struct table_row_reader table_row_reader(const struct table_draft *draft)
{
    return (struct table_row_reader){draft->first_row, 0};
}

// Stretches between holes are short, so most are copied a few rows too far.
static inline void copy_stretch(const struct table_draft *draft, struct cfi_row *to, size_t from, size_t count)
{
    const struct cfi_row *rows = draft->rows.rows + from;
    if (count + TABLE_ROWS_BEHIND > draft->rows.count - from) {
        memcpy(to, rows, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i += TABLE_ROWS_BEHIND)
        memcpy(to + i, rows + i, TABLE_ROWS_BEHIND * sizeof *to);
}

size_t table_draft_read(const struct table_draft *draft, struct table_row_reader *reader,
                        struct cfi_row rows[TABLE_ROWS_AT_ONCE + TABLE_ROWS_BEHIND])
{
    const struct table_padding *padding = &draft->padding;
    const struct cfi_row *from = draft->rows.rows;
    const size_t hole_count = padding->joined ? padding->count : 0;
    size_t count = 0, next = reader->next, next_hole = reader->next_hole;
    while (count < TABLE_ROWS_AT_ONCE && next < draft->rows.count) {
        const size_t hole = next_hole < hole_count ? padding->holes[next_hole] : draft->rows.count;
        const size_t room = TABLE_ROWS_AT_ONCE - count, stretch = hole - next < room ? hole - next : room;
        copy_stretch(draft, rows + count, next, stretch);
        count += stretch;
        next += stretch;
        if (next < hole || count == TABLE_ROWS_AT_ONCE || hole == draft->rows.count)
            continue;
        const uint32_t variant = padding->variants[from[hole + 1].rule_id * ALIGNS + padding->aligns[next_hole]];
        rows[count++] = (struct cfi_row){from[hole].pc_rel, variant};
        next += variant == NO_VARIANT ? 1 : 2;
        next_hole++;
    }
    *reader = (struct table_row_reader){next, next_hole};
    return count;
}

void table_draft_settle(struct table_draft *draft)
{
    struct table_row_reader reader = table_row_reader(draft);
    struct cfi_row rows[TABLE_ROWS_AT_ONCE + TABLE_ROWS_BEHIND];
    size_t kept = 0;
    for (size_t count; (count = table_draft_read(draft, &reader, rows)) > 0; kept += count)
        memcpy(draft->rows.rows + kept, rows, count * sizeof *rows);
    draft->rows.count = kept;
    draft->first_row = 0;
    table_padding_free(&draft->padding);
}
