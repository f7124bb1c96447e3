// SPDX-License-Identifier: Apache-2.0
// Between most functions lie a few bytes of padding. Stated plainly they are a row of their own: a tenth to a third of
// all rows, by library. Since the next function begins at the next multiple of 16, 32 or 64, one row can say both.
#include <stdlib.h>
#include <string.h>

#include "qutc/table/cell.h"
#include "qutc/table/draft.h"

// A variant of a rule costs a cell of 16 bytes and saves a row of two for each use.
enum { USES_MIN = 9, NO_VARIANT = 0, ALIGNS = QUT_CELL_ALIGN_64 + 1 };

// The smallest alignment at which padding of `distance` bytes, fewer than 64, ends exactly at `start`: that of which so
// much is no whole step. What does not begin at a multiple of it begins at none of a larger one.
static inline enum qut_cell_align alignment_of(uint32_t distance, uint32_t start)
{
    const unsigned align = QUT_CELL_ALIGN_16 + (unsigned)(distance >= 16) + (unsigned)(distance >= 32);
    return start & ((8u << align) - 1) ? QUT_CELL_NOT_PADDED : (enum qut_cell_align)align;
}

// The alignment class of the padding at the hole rows[i], where it and rows[i + 1] can be joined.
static inline enum qut_cell_align joinable(const struct table_draft *draft, size_t i)
{
    const struct cfi_row *rows = draft->rows.rows;
    uint32_t distance = rows[i + 1].pc_rel - rows[i].pc_rel;
    uint8_t form = draft->symbols.items[rows[i + 1].rule_id].cells[0].rule.form;
    if (distance >= 64 || (form != QUT_CELL_FRAME && form != QUT_CELL_DEREF))
        return QUT_CELL_NOT_PADDED;
    return alignment_of(distance, rows[i + 1].pc_rel);
}

static int make_variants(struct table_draft *draft, uint32_t *variants, uint32_t rule_count)
{
    for (uint32_t id = 0; id < rule_count; id++) {
        for (unsigned align = QUT_CELL_ALIGN_16; align < ALIGNS; align++) {
            uint32_t *variant = &variants[id * ALIGNS + align];
            bool worth_it = *variant >= USES_MIN;
            *variant = NO_VARIANT;
            if (!worth_it)
                continue;
            uint32_t symbol = table_draft_copy_symbol(draft, id);
            if (symbol == UINT32_MAX)
                return -1;
            draft->symbols.items[symbol].uses = 0;
            struct qut_rule_cell *cell = &draft->symbols.items[symbol].cells[0].rule;
            cell->flags = table_cell_padded(cell->flags, (enum qut_cell_align)align);
            *variant = symbol;
        }
    }
    return 0;
}

// What is kept moves to the front, stretch by stretch.
struct keeping {
    struct cfi_row *rows;
    size_t count;
    size_t kept, next; // so many are in place; the first that is not
};

enum { ROWS_AT_ONCE = 4 };

// All from the next one up to `end`. Stretches are short, so most are moved a few rows too far: over rows that were
// moved or dropped before, or that this moves.
static inline void keep_until(struct keeping *keeping, size_t end)
{
    struct cfi_row *to = keeping->rows + keeping->kept;
    const struct cfi_row *from = keeping->rows + keeping->next;
    const size_t count = end - keeping->next;
    if (keeping->next - keeping->kept >= ROWS_AT_ONCE && end + ROWS_AT_ONCE <= keeping->count) {
        for (size_t i = 0; i < count; i += ROWS_AT_ONCE) {
            struct cfi_row few[ROWS_AT_ONCE];
            memcpy(few, from + i, sizeof few);
            memcpy(to + i, few, sizeof few);
        }
    } else {
        memmove(to, from, count * sizeof *to);
    }
    keeping->kept += count;
    keeping->next = end;
}

int table_draft_join_padding(struct table_draft *draft, struct base_error *error)
{
    uint32_t rule_count = (uint32_t)draft->symbols.count;
    uint32_t *variants = calloc((size_t)rule_count * ALIGNS, sizeof *variants); // uses first, then symbols
    uint8_t *aligns = malloc(draft->hole_count + 1);                            // of each hole
    const uint32_t *holes = draft->holes;
    int result = variants && aligns ? 0 : -1;
    if (result == 0) {
        struct cfi_row *rows = draft->rows.rows;
        struct keeping keeping = {rows, draft->rows.count, 0, draft->first_row};
        for (size_t i = 0; i < draft->hole_count; i++) {
            enum qut_cell_align align = joinable(draft, holes[i]);
            aligns[i] = (uint8_t)align;
            if (align != QUT_CELL_NOT_PADDED)
                variants[rows[holes[i] + 1].rule_id * ALIGNS + align]++;
        }
        result = make_variants(draft, variants, rule_count);
        for (size_t i = 0; i < draft->hole_count && result == 0; i++) {
            uint32_t variant = NO_VARIANT;
            if (aligns[i] != QUT_CELL_NOT_PADDED)
                variant = variants[rows[holes[i] + 1].rule_id * ALIGNS + aligns[i]];
            if (variant != NO_VARIANT) {
                draft->symbols.items[CFI_RULE_HOLE_ID].uses--;
                draft->symbols.items[rows[holes[i] + 1].rule_id].uses--;
                draft->symbols.items[variant].uses++;
                rows[holes[i]].rule_id = variant;
                keep_until(&keeping, holes[i] + 1);
                keeping.next++;
            }
        }
        keep_until(&keeping, keeping.count);
        draft->rows.count = keeping.kept;
        draft->first_row = 0;
    }
    free(aligns);
    free(variants);
    return result == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "padding");
}
