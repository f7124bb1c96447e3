// SPDX-License-Identifier: Apache-2.0
// Frame sections and all else that describes code -> one list of rows, by precedence.
#include "qutc/rows.h"

#include <string.h>

#include "qutc/cfi/art.h"
#include "qutc/cfi/exidx.h"
#include "qutc/cfi/frame_program.h"
#include "qutc/cfi/plt.h"
#include "qutc/code/fill.h"
#include "qutc/code/mend.h"
#include "qutc/table/row_merge.h"

static bool describes_nothing(const struct input_image *image)
{
    struct input_go_functions go;
    return image->frame_count == 0 && !image->oat.present && !input_go_find(image, &go);
}

static int fail_without_source(struct qutc_rows *c)
{
    const struct code_fill_counts *code = &c->stats->code;
    return base_fail(c->error, BASE_ERR_NO_UNWIND, "", 0, "no .eh_frame, .debug_frame or .ARM.exidx%s",
                     code->is_cut      ? ", and what was followed of its code was in vain: --fill follows all"
                     : code->functions ? ", and none of its code can be followed"
                                       : "");
}

static int find_text(struct qutc_rows *c)
{
    const struct input_image *image = c->image;
    if (image->exec_count == 0)
        return base_fail(c->error, BASE_ERR_NO_UNWIND, "", 0, "no executable code");
    if (!c->fill && describes_nothing(image))
        return fail_without_source(c);
    // Blocks begin at multiples of every padding alignment, on every architecture.
    uint64_t granule = (uint64_t)QUT_BLOCK_UNITS << 2;
    c->text_start = image->exec[0].start & ~(granule - 1);
    c->text_end = image->exec[image->exec_count - 1].end;
    uint64_t unit = (uint64_t)1 << image->arch->pc_shift;
    c->text_end = (c->text_end + unit - 1) & ~(unit - 1);
    if (c->text_end <= c->text_start)
        return base_fail(c->error, BASE_ERR_NO_UNWIND, "", 0, "no executable code");
    if ((c->text_end - c->text_start) >> 32)
        return base_fail(c->error, BASE_ERR_LIMIT, "", 0, "text spans over 4 GiB");
    return 0;
}

static int read_section(struct qutc_rows *c, const struct input_frame_section *section, struct cfi_row_list *rows)
{
    if (section->kind == INPUT_FRAME_EXIDX) {
        struct cfi_exidx_counts counts = {0};
        if (cfi_exidx_read(c->image, section, c->text_start, c->text_end, &c->rules, rows, &counts, c->error) != 0)
            return -1;
        c->stats->exidx_count += counts.functions;
        c->stats->source_rows += counts.functions;
        c->stats->skipped_fdes += counts.out_of_order;
        if (counts.out_of_order)
            base_fail(&c->stats->first_skipped, BASE_ERR_MALFORMED, section->name, 0, "entries out of order");
        return 0;
    }
    struct cfi_frame_counts counts = {0};
    if (cfi_frame_rows_read(c->image, section, c->text_start, c->text_end, &c->rules, rows, &counts, c->error) != 0)
        return -1;
    c->stats->fde_count += counts.fdes;
    c->stats->cie_count += counts.cies;
    c->stats->source_rows += counts.rows;
    c->stats->skipped_fdes += counts.skipped;
    c->stats->overlaps += counts.overlaps;
    if (c->stats->first_skipped.reason == BASE_OK)
        c->stats->first_skipped = counts.first_skipped;
    return 0;
}

static uint32_t section_flags(const struct input_frame_section *section)
{
    static const uint32_t by_kind[] = {[INPUT_FRAME_EH] = QUT_TABLE_FROM_EH_FRAME,
                                       [INPUT_FRAME_DEBUG] = QUT_TABLE_FROM_DEBUG_FRAME,
                                       [INPUT_FRAME_EXIDX] = QUT_TABLE_FROM_EXIDX};
    static const uint32_t by_origin[] = {[INPUT_FROM_FILE] = 0,
                                         [INPUT_FROM_GNU_DEBUGDATA] = QUT_TABLE_FROM_GNU_DEBUGDATA,
                                         [INPUT_FROM_DEBUG_FILE] = QUT_TABLE_FROM_DEBUG_FILE};
    return by_kind[section->kind] | by_origin[section->from];
}

static int take_rows(struct qutc_rows *c, struct cfi_row_list *rows, uint32_t flags)
{
    int result = 0;
    // Nothing but the hole: an exception index has that where all its entries are of no code.
    bool is_empty = rows->count == 0 || (rows->count == 1 && rows->rows[0].rule_id == CFI_RULE_HOLE_ID);
    if (!is_empty) {
        c->flags |= flags;
        if (c->rows.count == 0) {
            c->rows = *rows;
            return 0;
        }
        if (flags & QUT_TABLE_FROM_CODE)
            result = table_rows_refine(&c->rows, rows, &c->rules, code_fill_refines, c->error);
        else
            result = table_rows_fill_holes(&c->rows, rows, c->error);
    }
    cfi_row_list_free(rows);
    return result;
}

// The headers of an OAT file's methods describe what nothing else does.
static int read_oat(struct qutc_rows *c)
{
    if (!c->image->oat.present)
        return 0;
    c->flags |= QUT_TABLE_MANAGED;
    struct cfi_row_list rows = {0};
    if (cfi_oat_rows(c->image, c->text_start, c->text_end, &c->rows, &c->rules, &rows, &c->stats->oat, c->error) != 0) {
        cfi_row_list_free(&rows);
        return -1;
    }
    return take_rows(c, &rows, QUT_TABLE_FROM_OAT_HEADERS);
}

// Functions of Go that nothing else describes: the linker drops .debug_frame when it strips.
static int read_go(struct qutc_rows *c, enum cfi_go_part part)
{
    struct cfi_row_list rows = {0};
    c->stats->go = (struct cfi_go_counts){0};
    if (cfi_go_rows(c->image, part, c->text_start, c->text_end, &c->rules, &rows, &c->stats->go, c->error) != 0) {
        cfi_row_list_free(&rows);
        return -1;
    }
    if (c->stats->go.malformed && c->stats->first_skipped.reason == BASE_OK)
        base_fail(&c->stats->first_skipped, BASE_ERR_MALFORMED, ".gopclntab", 0, "functions whose part cannot be read");
    return take_rows(c, &rows, QUT_TABLE_FROM_GOPCLNTAB);
}

// What is left: the code itself is asked.
static int read_code(struct qutc_rows *c)
{
    if (!c->fill || c->image->oat.present) // its methods' headers are read with their code
        return 0;
    struct cfi_row_list rows = {0};
    if (code_fill(c->image, c->text_start, c->text_end, c->fill, &c->rows, &c->rules, &rows, &c->stats->code,
                  c->error) != 0) {
        cfi_row_list_free(&rows);
        return -1;
    }
    return take_rows(c, &rows, QUT_TABLE_FROM_CODE);
}

static int keep_mended(struct qutc_rows *c, const struct cfi_row_list *rows)
{
    if (!c->keep_mended)
        return 0;
    if (cfi_row_list_reserve(&c->mended, rows->count, c->error) != 0)
        return -1;
    memcpy(c->mended.rows, rows->rows, rows->count * sizeof *rows->rows);
    c->mended.count = rows->count;
    return 0;
}

// Where the code proves that what is stated is wrong, the code's rule counts.
static int mend(struct qutc_rows *c)
{
    struct input_go_functions go;
    struct cfi_row_list rows = {0};
    // Go's functions keep no register; those that matter have rules of their own.
    if (c->as_stated || input_go_find(c->image, &go))
        return 0;
    int result = code_mend(c->image, c->text_start, c->text_end, &c->rows, &c->rules, c->check, &rows, &c->stats->mend,
                           c->error);
    if (result == 0 && rows.count) {
        result = keep_mended(c, &rows);
        c->flags |= c->stats->mend.instructions ? QUT_TABLE_FROM_CODE : 0u;
        if (result == 0)
            result = table_rows_fill_holes(&rows, &c->rows, c->error);
        if (result == 0) {
            struct cfi_row_list stated = c->rows;
            c->rows = rows;
            rows = stated;
        }
    }
    cfi_row_list_free(&rows);
    return result;
}

static int fail_without_rows(struct qutc_rows *c)
{
    const struct input_image *image = c->image;
    const struct base_error *why = &c->stats->first_skipped;
    if (why->reason != BASE_OK)
        return base_fail_as(c->error, why);
    if (image->damage_count)
        return base_fail_as(c->error, &image->damage);
    if (c->stats->oat.unknown_version)
        return base_fail(c->error, BASE_ERR_UNSUPPORTED, "oatdata", 0, "headers of OAT version %03u are not known",
                         (unsigned)image->oat.version);
    if (describes_nothing(image))
        return fail_without_source(c);
    const char *name = image->frame_count ? image->frame[0].name : image->oat.present ? "oatdata" : ".gopclntab";
    return base_fail(c->error, BASE_ERR_NO_UNWIND, name, 0, "it describes no code of this file");
}

static int read_rows(struct qutc_rows *c)
{
    if (!c->as_stated && read_go(c, CFI_GO_SPECIALS) != 0)
        return -1;
    for (unsigned i = 0; i < c->image->frame_count; i++) {
        struct cfi_row_list rows = {0};
        if (read_section(c, &c->image->frame[i], &rows) != 0) {
            cfi_row_list_free(&rows);
            return -1;
        }
        if (take_rows(c, &rows, section_flags(&c->image->frame[i])) != 0)
            return -1;
    }
    if (read_oat(c) != 0 || read_go(c, CFI_GO_ALL) != 0)
        return -1;
    if (c->rows.count == 0 && !c->fill)
        return fail_without_rows(c);
    struct cfi_row_list plt = {0};
    if (cfi_plt_rows(c->image, c->text_start, c->text_end, &c->rules, &plt, c->error) != 0) {
        cfi_row_list_free(&plt);
        return -1;
    }
    if (take_rows(c, &plt, QUT_TABLE_FROM_PLT) != 0 || mend(c) != 0 || read_code(c) != 0)
        return -1;
    if (c->rows.count == 0)
        return fail_without_rows(c);
    if (!c->as_stated && cfi_art_rows(c->image, c->text_start, c->text_end, &c->rules, &c->rows, c->error) != 0)
        return -1;
    return input_image_check_memory(c->image, c->error); // its symbols were read for these rows
}

int qutc_rows_read(struct qutc_rows *c)
{
    if (find_text(c) != 0 || cfi_rule_set_init(&c->rules, c->error) != 0)
        return -1;
    return read_rows(c);
}

void qutc_rows_free(struct qutc_rows *c)
{
    cfi_row_list_free(&c->rows);
    cfi_row_list_free(&c->mended);
    cfi_rule_set_free(&c->rules);
}
