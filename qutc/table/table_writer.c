// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/table_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/vector.h"
#include "formats/qut_table_check.h"
#include "formats/qut_table_code_inline.h"
#include "qutc/table/codes.h"

struct writer {
    struct table_draft *draft;
    struct table_codes codes;
    struct qut_table_header header;
    uint8_t *file; // of the size bound; pages that stay unused are never touched
    size_t blocks_at;
    BASE_VECTOR(uint8_t) wides; // the few blocks that do not fit; put behind the blocks at the end
};

// Of cells, and so of whatever else comes behind the groups.
enum { SECTION_ALIGN = sizeof(union qut_table_cell) };

static size_t aligned(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}

// The rows of one block or run on their way out.
struct pending {
    uint32_t count;
    uint32_t code_bytes;
    uint8_t pcs[QUT_BLOCK_UNITS];
    uint8_t codes[QUT_BLOCK_UNITS * 4];
};

// Takes rows from `next` on that lie before end_rel. Returns the first one that does not.
static inline size_t gather(const struct writer *w, struct pending *pending, const struct cfi_row *rows, size_t next,
                            size_t row_count, uint64_t base_rel, uint64_t end_rel)
{
    // Apart from the structs, to be in registers: bytes that are written might be theirs.
    const struct table_code *of_symbol = w->codes.of_symbol, *of_run = w->codes.of_run;
    const unsigned pc_shift = w->draft->pc_shift;
    uint32_t count = pending->count, code_bytes = pending->code_bytes;
    for (; next < row_count && rows[next].pc_rel < end_rel; next++) {
        const uint32_t id = rows[next].rule_id;
        const struct table_code *code = id & TABLE_SYMBOL_RUN ? &of_run[id & ~TABLE_SYMBOL_RUN] : &of_symbol[id];
        pending->pcs[count++] = (uint8_t)((rows[next].pc_rel - base_rel) >> pc_shift);
        memcpy(pending->codes + code_bytes, code->bytes, 4); // the next code overwrites what is not its own
        code_bytes += code->size;
    }
    pending->count = count;
    pending->code_bytes = code_bytes;
    return next;
}

// Blocks have a handful of rows: one copy of a fixed size beats a call. The room behind is written again or cleared.
static inline void copy_short(uint8_t *out, const uint8_t *bytes, uint32_t count)
{
    if (count <= 16)
        memcpy(out, bytes, 16);
    else
        memcpy(out, bytes, count);
}

// Returns the size, or 0 where the rows do not fit 255 bytes.
static inline size_t put_pending(uint8_t *out, const struct pending *pending)
{
    uint32_t count = pending->count, code_bytes = pending->code_bytes;
    bool one_byte_codes = code_bytes == count;
    size_t size = one_byte_codes ? 2 * (size_t)count : (1 + (size_t)count + code_bytes) | 1;
    if (size > QUT_BLOCK_BYTES_MAX)
        return 0;
    uint8_t *at = out;
    if (!one_byte_codes)
        *at++ = (uint8_t)count;
    copy_short(at, pending->pcs, count);
    at = out + size - code_bytes;
    if (!one_byte_codes)
        out[1 + count] = 0; // the byte that makes the size odd, where it takes one
    copy_short(at, pending->codes, code_bytes);
    return size;
}

// What does not fit a block. Codes are read from their end.
static size_t put_wide_block(struct writer *w, uint8_t *out, const struct pending *pending)
{
    const uint32_t offset = (uint32_t)w->wides.count;
    const size_t size = qut_wide_bytes(pending->count);
    if (!BASE_RESERVE(&w->wides, size))
        return 0;
    uint8_t *wide = w->wides.items + w->wides.count;
    memset(wide, 0, size);
    memcpy(wide, &pending->count, 4);
    memcpy(wide + 4, pending->pcs, pending->count);
    const struct qut_wide_view view = qut_wide_view(wide);
    const uint8_t *code_end = pending->codes + pending->code_bytes;
    for (uint32_t i = pending->count; i-- > 0; code_end -= qut_code_bytes(&w->header.leads, code_end[-1])) {
        uint32_t ref = qut_code_ref(&w->header.leads, code_end);
        memcpy(wide + (view.refs - wide) + 4 * i, &ref, 4);
    }
    w->wides.count += size;

    uint8_t *start = out;
    *out++ = 0;
    memcpy(out, &offset, 4);
    out += 4;
    code_end = pending->codes + pending->code_bytes;
    const unsigned last_bytes = qut_code_bytes(&w->header.leads, code_end[-1]);
    if (last_bytes % 2 != 0)
        *out++ = 0;
    memcpy(out, code_end - last_bytes, last_bytes);
    return (size_t)(out - start) + last_bytes;
}

// The block that is on its way out.
struct block {
    uint64_t number;
    uint64_t base_rel, end_rel; // of its text
    struct pending pending;
};

// Moves on to a later block. Groups begin where the blocks before them end.
static void open_block(const struct writer *w, struct block *block, uint64_t number, uint32_t blocks_offset,
                       struct qut_table_group *groups)
{
    const uint64_t block_bytes = (uint64_t)QUT_BLOCK_UNITS << w->draft->pc_shift;
    for (uint64_t group = block->number / QUT_GROUP_BLOCKS; group < number / QUT_GROUP_BLOCKS; group++)
        groups[group + 1].blocks_offset = blocks_offset;
    block->number = number;
    block->base_rel = w->draft->start_rel + number * block_bytes;
    block->end_rel = block->base_rel + block_bytes;
    block->pending.count = block->pending.code_bytes = 0;
}

// Returns its end, NULL without memory.
static uint8_t *close_block(struct writer *w, const struct block *block, uint8_t *out, struct qut_table_group *groups)
{
    if (block->pending.count == 0)
        return out;
    size_t size = put_pending(out, &block->pending);
    if (!size)
        size = put_wide_block(w, out, &block->pending);
    groups[block->number / QUT_GROUP_BLOCKS].block_bytes[block->number % QUT_GROUP_BLOCKS] = (uint8_t)size;
    return size ? out + size : NULL;
}

// All rows, block by block. Returns the end, NULL without memory.
static uint8_t *put_blocks(struct writer *w, uint8_t *out, struct qut_table_group *groups)
{
    const uint8_t *blocks = w->file + w->blocks_at;
    const unsigned block_log2 = (unsigned)__builtin_ctz(QUT_BLOCK_UNITS) + w->draft->pc_shift;
    const uint64_t last_block = (w->draft->text_size - 1) >> block_log2;
    struct table_row_reader reader = table_row_reader(w->draft);
    struct cfi_row rows[TABLE_ROWS_AT_ONCE + TABLE_ROWS_BEHIND];
    struct block block;
    *out++ = w->codes.hole; // in force where the text begins
    groups[0].blocks_offset = (uint32_t)(out - blocks);
    block.number = 0;
    open_block(w, &block, 0, 0, groups);
    for (size_t count; (count = table_draft_read(w->draft, &reader, rows)) > 0;) {
        for (size_t next = 0; next < count;) {
            if (rows[next].pc_rel >= block.end_rel) {
                out = close_block(w, &block, out, groups);
                if (!out)
                    return NULL;
                const uint64_t number = (rows[next].pc_rel - w->draft->start_rel) >> block_log2;
                if (number > last_block)
                    return NULL;
                open_block(w, &block, number, (uint32_t)(out - blocks), groups);
            }
            next = gather(w, &block.pending, rows, next, count, block.base_rel, block.end_rel);
        }
    }
    out = close_block(w, &block, out, groups);
    if (out)
        open_block(w, &block, last_block, (uint32_t)(out - blocks), groups);
    return out;
}

static void put_cells(const struct writer *w, union qut_table_cell *out)
{
    for (uint32_t i = 0; i < w->codes.own_symbols; i++) {
        const struct table_symbol *symbol = &w->draft->symbols.items[w->codes.cell_order[i]];
        memcpy(out, symbol->cells, symbol->cell_count * sizeof *out);
        out += symbol->cell_count;
    }
}

static uint8_t *put_runs(const struct writer *w, uint8_t *out, uint32_t *starts)
{
    const uint8_t *first = out;
    for (uint32_t i = 0; i < w->codes.used_runs; i++) {
        const struct table_run *run = &w->draft->runs[w->codes.run_order[i]];
        starts[i] = (uint32_t)(out - first);
        const struct cfi_row *rows = w->draft->run_rows.rows + run->first;
        struct pending pending;
        pending.count = pending.code_bytes = 0;
        gather(w, &pending, rows, 0, run->count, rows[0].pc_rel, UINT64_MAX);
        out += put_pending(out, &pending);
    }
    starts[w->codes.used_runs] = (uint32_t)(out - first);
    return out;
}

// Size that no table of this draft exceeds.
static size_t size_bound(const struct writer *w, size_t group_bytes)
{
    const struct table_draft *draft = w->draft;
    return sizeof w->header + 8 * QUT_TABLE_ALIGN + 4 * QUT_TABLE_SLACK_BYTES + group_bytes +
           w->codes.cell_count * sizeof(union qut_table_cell) + (draft->run_count + 1) * sizeof(uint32_t) +
           (draft->rows.count - draft->padding.joined + draft->run_rows.count) * 8 + draft->run_count * 8 + 16;
}

static struct qut_table_section section(size_t offset, size_t size)
{
    return (struct qut_table_section){(uint32_t)offset, (uint32_t)size};
}

// Zeroes the room between the end of a section and where the next one begins, and says where that is.
static size_t close_section(uint8_t *file, size_t end, size_t slack_bytes)
{
    size_t next = aligned(end + slack_bytes, SECTION_ALIGN);
    memset(file + end, 0, next - end);
    return next;
}

static int lay_out(struct writer *w, size_t *file_size, struct base_error *error)
{
    struct table_draft *draft = w->draft;
    struct qut_table_header *h = &w->header;
    uint64_t block_bytes = (uint64_t)QUT_BLOCK_UNITS << draft->pc_shift;
    uint64_t block_count = (draft->text_size + block_bytes - 1) / block_bytes;
    size_t group_bytes =
        (size_t)((block_count + QUT_GROUP_BLOCKS - 1) / QUT_GROUP_BLOCKS) * sizeof(struct qut_table_group);
    size_t bound = size_bound(w, group_bytes);
    if (bound > UINT32_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "a table over 4 GiB");
    w->file = base_array_malloc(bound);
    if (!w->file)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "table");

    size_t at = close_section(w->file, 0, sizeof *h);
    static_assert(sizeof *h % QUT_TABLE_ALIGN == 0, "the groups come behind it");
    h->groups = section(at, group_bytes);
    struct qut_table_group *groups = (void *)(w->file + at);
    memset(groups, 0, group_bytes);
    at = close_section(w->file, at + group_bytes, 0);
    h->cells = section(at, w->codes.cell_count * sizeof(union qut_table_cell));
    put_cells(w, (void *)(w->file + at));
    at = close_section(w->file, at + h->cells.size, 0);
    h->run_starts = section(at, w->codes.used_runs ? (w->codes.used_runs + 1) * sizeof(uint32_t) : 0);
    uint32_t *run_starts = (void *)(w->file + at);
    at = close_section(w->file, at + h->run_starts.size, 0);
    h->runs = section(at, 0);
    if (w->codes.used_runs) {
        h->runs.size = (uint32_t)((size_t)(put_runs(w, w->file + at, run_starts) - w->file) - at);
        at = close_section(w->file, at + h->runs.size, QUT_TABLE_SLACK_BYTES);
    }
    w->blocks_at = at;
    const uint8_t *end = put_blocks(w, w->file + at, groups);
    if (!end)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "table");
    h->blocks = section(at, (size_t)(end - w->file) - at);
    at = close_section(w->file, at + h->blocks.size, QUT_TABLE_SLACK_BYTES);
    h->wides = section(at, w->wides.count);
    *file_size = aligned(at + w->wides.count, SECTION_ALIGN);
    // The wide blocks are not in the bound, and the rest of it goes back.
    uint8_t *file = realloc(w->file, *file_size);
    if (!file)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "table");
    w->file = file;
    if (w->wides.count)
        memcpy(file + at, w->wides.items, w->wides.count);
    memset(file + at + w->wides.count, 0, *file_size - at - w->wides.count);
    return 0;
}

static void finish_header(struct writer *w, size_t file_size)
{
    const struct table_draft *draft = w->draft;
    struct qut_table_header *h = &w->header;
    memcpy(h->magic, QUT_TABLE_MAGIC, sizeof h->magic);
    h->version = QUT_TABLE_VERSION;
    h->file_size = (uint32_t)file_size;
    h->arch = (uint8_t)draft->arch->id;
    h->pc_shift = (uint8_t)draft->pc_shift;
    h->text_start = draft->text_start;
    h->text_size = draft->text_size;
    h->row_count = draft->row_count;
    h->rule_count = draft->rule_count;
    h->refused_rows = draft->refused_rows;
    h->hole_rows = draft->hole_rows;
    h->covered_bytes = draft->covered_bytes;
    h->refused_bytes = draft->refused_bytes;
    memcpy(w->file, h, sizeof *h);
    size_t summed_at = offsetof(struct qut_table_header, checksum) + sizeof h->checksum;
    h->checksum = qut_table_checksum(w->file + summed_at, file_size - summed_at);
    memcpy(w->file, h, sizeof *h);
}

int table_write(struct table_draft *draft, const struct qut_table_header *header, uint8_t **table, size_t *table_size,
                struct base_error *error)
{
    struct writer w = {.draft = draft, .header = *header};
    if (table_codes_assign(&w.codes, draft, error) != 0)
        return -1;
    w.header.leads = w.codes.leads;
    int result = lay_out(&w, table_size, error);
    if (result == 0) {
        finish_header(&w, *table_size);
        *table = w.file;
    } else {
        free(w.file);
    }
    base_vector_free(&w.wides.vector);
    table_codes_free(&w.codes);
    return result;
}
