// SPDX-License-Identifier: Apache-2.0
// The whole way of one image: rows -> draft -> file.
#include <string.h>

#include "qutc/rows.h"
#include "qutc/table/table_writer.h"

static uint32_t at_most_u32(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static void describe_source(const struct qutc_rows *c, bool small, struct qut_table_header *header)
{
    static const uint32_t identity_flags[] = {
        [INPUT_CONTENT_HASH] = 0, [INPUT_BUILD_ID] = QUT_TABLE_BUILD_ID, [INPUT_OAT_IDENTITY] = QUT_TABLE_OAT_IDENTITY};
    const struct input_image *image = c->image;
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

static int write_table(struct qutc_rows *c, const struct qutc_compile_options *options, uint8_t **table,
                       size_t *table_size)
{
    struct table_draft draft;
    if (table_draft_init(&draft, c->image->arch, c->text_start, c->text_end, &c->rules, &c->rows, c->error) != 0)
        return -1;
    struct qut_table_header header;
    bool small = options && options->small;
    describe_source(c, small, &header);
    int result = table_draft_join_padding(&draft, c->error);
    if (result == 0 && small)
        result = table_draft_share_runs(&draft, c->error);
    if (result == 0)
        result = table_write(&draft, &header, table, table_size, c->error);
    c->stats->row_count = draft.row_count;
    c->stats->rule_count = draft.rule_count;
    table_draft_free(&draft);
    return result;
}

int qutc_compile(const struct input_image *image, const struct qutc_compile_options *options, uint8_t **table,
                 size_t *table_size, struct qutc_compile_stats *stats, struct base_error *error)
{
    struct qutc_compile_stats own_stats;
    struct qutc_rows c = {.image = image,
                          .stats = stats ? stats : &own_stats,
                          .error = error,
                          .fill = options ? options->fill : CODE_FILL_NOTHING,
                          .check = options && options->check,
                          .as_stated = options && options->as_stated};
    *c.stats = (struct qutc_compile_stats){0};
    *table = NULL;
    *table_size = 0;
    int result = qutc_rows_read(&c);
    if (result == 0)
        result = write_table(&c, options, table, table_size);
    c.stats->table_bytes = *table_size;
    qutc_rows_free(&c);
    return result;
}
