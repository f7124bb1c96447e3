// SPDX-License-Identifier: Apache-2.0
// The whole way of one image: frame sections -> rows -> one list by precedence -> draft -> file.
#include <stdlib.h>
#include <string.h>

#include "qutc/cfi/art.h"
#include "qutc/cfi/exidx.h"
#include "qutc/cfi/frame_rows.h"
#include "qutc/cfi/oat_rows.h"
#include "qutc/cfi/plt.h"
#include "qutc/qutc.h"
#include "qutc/table/row_merge.h"
#include "qutc/table/writer.h"

struct compiler {
    const struct qutc_image *image;
    struct qutc_compile_stats *stats;
    struct qutc_error *error;
    uint64_t text_start, text_end;
    struct qutc_rule_set rules;
    struct qutc_row_list rows; // so far
    uint32_t flags;            // enum qut_table_flag
};

static int find_text(struct compiler *c)
{
    const struct qutc_image *image = c->image;
    if (image->exec_count == 0)
        return qutc_fail(c->error, QUTC_ERR_NO_UNWIND, "", 0, "no executable code");
    if (image->frame_count == 0 && !image->oat.present)
        return qutc_fail(c->error, QUTC_ERR_NO_UNWIND, "", 0, "no .eh_frame, .debug_frame or .ARM.exidx");
    // Blocks begin at multiples of every padding alignment, on every architecture.
    uint64_t granule = (uint64_t)QUT_BLOCK_UNITS << 2;
    c->text_start = image->exec[0].start & ~(granule - 1);
    c->text_end = image->exec[image->exec_count - 1].end;
    uint64_t unit = (uint64_t)1 << image->arch->pc_shift;
    c->text_end = (c->text_end + unit - 1) & ~(unit - 1);
    if (c->text_end <= c->text_start)
        return qutc_fail(c->error, QUTC_ERR_NO_UNWIND, "", 0, "no executable code");
    if ((c->text_end - c->text_start) >> 32)
        return qutc_fail(c->error, QUTC_ERR_LIMIT, "", 0, "text spans over 4 GiB");
    return 0;
}

static int read_section(struct compiler *c, const struct qutc_frame_section *section, struct qutc_row_list *rows)
{
    if (section->kind == QUTC_FRAME_EXIDX) {
        struct qutc_exidx_counts counts = {0};
        if (qutc_exidx_read(c->image, section, c->text_start, c->text_end, &c->rules, rows, &counts, c->error) != 0)
            return -1;
        c->stats->exidx_count += counts.functions;
        c->stats->source_rows += counts.functions;
        c->stats->skipped_fdes += counts.out_of_order;
        if (counts.out_of_order)
            qutc_fail(&c->stats->first_skipped, QUTC_ERR_MALFORMED, section->name, 0, "entries out of order");
        return 0;
    }
    struct qutc_frame_counts counts = {0};
    if (qutc_frame_rows_read(c->image, section, c->text_start, c->text_end, &c->rules, rows, &counts, c->error) != 0)
        return -1;
    c->stats->fde_count += counts.fdes;
    c->stats->cie_count += counts.cies;
    c->stats->source_rows += counts.rows;
    c->stats->skipped_fdes += counts.skipped;
    c->stats->overlaps += counts.overlaps;
    if (c->stats->first_skipped.reason == QUTC_OK)
        c->stats->first_skipped = counts.first_skipped;
    return 0;
}

static uint32_t section_flags(const struct qutc_frame_section *section)
{
    static const uint32_t by_kind[] = {[QUTC_FRAME_EH] = QUT_TABLE_FROM_EH_FRAME,
                                       [QUTC_FRAME_DEBUG] = QUT_TABLE_FROM_DEBUG_FRAME,
                                       [QUTC_FRAME_EXIDX] = QUT_TABLE_FROM_EXIDX};
    static const uint32_t by_origin[] = {[QUTC_FROM_FILE] = 0,
                                         [QUTC_FROM_GNU_DEBUGDATA] = QUT_TABLE_FROM_GNU_DEBUGDATA,
                                         [QUTC_FROM_DEBUG_FILE] = QUT_TABLE_FROM_DEBUG_FILE};
    return by_kind[section->kind] | by_origin[section->from];
}

static int take_rows(struct compiler *c, struct qutc_row_list *rows, uint32_t flags)
{
    int result = 0;
    if (rows->count) {
        c->flags |= flags;
        if (c->rows.count == 0) {
            c->rows = *rows;
            return 0;
        }
        result = qutc_rows_fill_holes(&c->rows, rows, c->error);
    }
    qutc_row_list_free(rows);
    return result;
}

// The headers of an OAT file's methods describe what nothing else does.
static int read_oat(struct compiler *c)
{
    if (!c->image->oat.present)
        return 0;
    c->flags |= QUT_TABLE_MANAGED;
    struct qutc_row_list rows = {0};
    if (qutc_oat_rows(c->image, c->text_start, c->text_end, &c->rows, &c->rules, &rows, &c->stats->oat, c->error) !=
        0) {
        qutc_row_list_free(&rows);
        return -1;
    }
    return take_rows(c, &rows, QUT_TABLE_FROM_OAT_HEADERS);
}

static int fail_without_rows(struct compiler *c)
{
    const struct qutc_image *image = c->image;
    const struct qutc_error *why = &c->stats->first_skipped;
    if (why->reason != QUTC_OK)
        return qutc_fail(c->error, why->reason, why->section, why->offset, "%s", why->detail);
    if (image->damage_count)
        return qutc_fail(c->error, image->damage.reason, image->damage.section, image->damage.offset, "%s",
                         image->damage.detail);
    if (c->stats->oat.unknown_version)
        return qutc_fail(c->error, QUTC_ERR_UNSUPPORTED, "oatdata", 0, "headers of OAT version %03u are not known",
                         (unsigned)image->oat.version);
    const char *name = image->frame_count ? image->frame[0].name : "oatdata";
    return qutc_fail(c->error, QUTC_ERR_NO_UNWIND, name, 0, "it describes no code of this file");
}

static int read_rows(struct compiler *c)
{
    for (unsigned i = 0; i < c->image->frame_count; i++) {
        struct qutc_row_list rows = {0};
        if (read_section(c, &c->image->frame[i], &rows) != 0) {
            qutc_row_list_free(&rows);
            return -1;
        }
        if (take_rows(c, &rows, section_flags(&c->image->frame[i])) != 0)
            return -1;
    }
    if (read_oat(c) != 0)
        return -1;
    if (c->rows.count == 0)
        return fail_without_rows(c);
    struct qutc_row_list plt = {0};
    if (qutc_plt_rows(c->image, c->text_start, c->text_end, &c->rules, &plt, c->error) != 0) {
        qutc_row_list_free(&plt);
        return -1;
    }
    if (take_rows(c, &plt, QUT_TABLE_FROM_PLT) != 0)
        return -1;
    return qutc_art_rows(c->image, c->text_start, c->text_end, &c->rules, &c->rows, c->error);
}

static uint32_t at_most_u32(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static void describe_source(const struct compiler *c, bool small, struct qut_table_header *header)
{
    static const uint32_t identity_flags[] = {
        [QUTC_CONTENT_HASH] = 0, [QUTC_BUILD_ID] = QUT_TABLE_BUILD_ID, [QUTC_OAT_IDENTITY] = QUT_TABLE_OAT_IDENTITY};
    const struct qutc_image *image = c->image;
    *header = (struct qut_table_header){
        .flags = c->flags | identity_flags[image->identity_kind] | (small ? QUT_TABLE_SMALL : 0u),
        .identity_size = image->identity_size,
        .eh_frame_bytes = at_most_u32(image->eh_frame_bytes),
        .eh_frame_hdr_bytes = at_most_u32(image->eh_frame_hdr_bytes),
        .debug_frame_bytes = at_most_u32(image->debug_frame_bytes),
        .exidx_bytes = at_most_u32(image->exidx_bytes + image->extab_bytes),
    };
    memcpy(header->identity, image->identity, sizeof header->identity);
}

static int write_table(struct compiler *c, const struct qutc_compile_options *options, uint8_t **table,
                       size_t *table_size)
{
    struct qutc_draft draft;
    if (qutc_draft_init(&draft, c->image->arch, c->text_start, c->text_end, &c->rules, &c->rows, c->error) != 0)
        return -1;
    struct qut_table_header header;
    bool small = options && options->small;
    describe_source(c, small, &header);
    int result = qutc_draft_join_padding(&draft, c->error);
    if (result == 0 && small)
        result = qutc_draft_share_runs(&draft, c->error);
    if (result == 0)
        result = qutc_table_write(&draft, &header, table, table_size, c->error);
    c->stats->row_count = draft.row_count;
    c->stats->rule_count = draft.rule_count;
    qutc_draft_free(&draft);
    return result;
}

int qutc_compile(const struct qutc_image *image, const struct qutc_compile_options *options, uint8_t **table,
                 size_t *table_size, struct qutc_compile_stats *stats, struct qutc_error *error)
{
    struct qutc_compile_stats own_stats;
    struct compiler c = {.image = image, .stats = stats ? stats : &own_stats, .error = error};
    *c.stats = (struct qutc_compile_stats){0};
    *table = NULL;
    *table_size = 0;
    int result = find_text(&c);
    if (result == 0)
        result = qutc_rule_set_init(&c.rules, error);
    if (result == 0)
        result = read_rows(&c);
    if (result == 0)
        result = write_table(&c, options, table, table_size);
    c.stats->table_bytes = *table_size;
    qutc_row_list_free(&c.rows);
    qutc_rule_set_free(&c.rules);
    return result;
}
