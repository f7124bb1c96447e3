// SPDX-License-Identifier: Apache-2.0
#include "formats/qut_table_check.h"

#include "formats/qut_checksum_inline.h"
#include "formats/qut_standard_cells.h"
#include "formats/qut_table.h"
#include "formats/qut_table_code_inline.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tables are read in place");

const char *qut_table_fault_name(enum qut_table_fault fault)
{
    static const char *const names[QUT_TABLE_FAULT_END] = {
        [QUT_TABLE_OK] = "ok",
        [QUT_TABLE_TOO_SHORT] = "too short for a table",
        [QUT_TABLE_BAD_MAGIC] = "not a QUT table",
        [QUT_TABLE_OLDER] = "made by an older QUT: make it again with qutc compile",
        [QUT_TABLE_BAD_SIZE] = "not as long as its header says",
        [QUT_TABLE_BAD_CHECKSUM] = "checksum mismatch",
        [QUT_TABLE_BAD_HEADER] = "header field out of range",
        [QUT_TABLE_BAD_SECTION] = "section out of place",
        [QUT_TABLE_BAD_CELL] = "malformed rule cell",
        [QUT_TABLE_BAD_GROUP] = "groups do not tile the blocks",
        [QUT_TABLE_BAD_BLOCK] = "malformed block",
        [QUT_TABLE_BAD_CODE] = "code names no rule",
        [QUT_TABLE_BAD_RUN] = "malformed run",
        [QUT_TABLE_BAD_WIDE] = "malformed wide block",
        [QUT_TABLE_FOREIGN] = "made for another file",
        [QUT_TABLE_NEWER] = "made by a newer QUT: use that one, or make it again with qutc compile",
    };
    return (unsigned)fault < QUT_TABLE_FAULT_END ? names[fault] : "unknown fault";
}

uint64_t qut_table_checksum(const void *bytes, size_t size)
{
    // Four independent lanes of multiply and rotate: memory speed, any single changed word changes its lane.
    const uint8_t *at = bytes;
    uint64_t lanes[4] = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, 0x082efa98ec4e6c89u};
    size_t left = size;
    while (left >= 32) {
        uint64_t words[4];
        memcpy(words, at, 32);
        for (int i = 0; i < 4; i++) {
            uint64_t mixed = (lanes[i] ^ words[i]) * 0x9fb21c651e98df25u;
            lanes[i] = mixed ^ mixed >> 29;
        }
        at += 32;
        left -= 32;
    }
    uint64_t tail[4] = {0};
    memcpy(tail, at, left);
    uint64_t sum = size;
    for (int i = 0; i < 4; i++) {
        sum = (sum ^ lanes[i] ^ tail[i]) * 0x9fb21c651e98df25u;
        sum ^= sum >> 32;
    }
    return sum;
}

struct check {
    const uint8_t *bytes;
    const struct qut_table_header *header;
    const union qut_table_cell *cells[QUT_CELL_OWNERS];
    const uint32_t *run_starts;
    uint32_t cell_counts[QUT_CELL_OWNERS];
    uint32_t run_count;
    uint64_t fault_offset;
    uint8_t sane_leads[256];       // bit 0: where no run may be named, bit 1: where one may
    uint8_t first_not_sane[2][16]; // sixteen times: where no run may be named, where one may
};

static enum qut_table_fault fault_at(struct check *c, enum qut_table_fault fault, const void *where)
{
    c->fault_offset = (uint64_t)((const uint8_t *)where - c->bytes);
    return fault;
}

// More of them than are known here may be of a QUT that knows more.
static enum qut_table_fault check_standard_cells(struct check *c)
{
    const struct qut_table_header *h = c->header;
    const struct qut_standard_cells known = qut_standard_cells((enum qut_arch_id)h->arch);
    const struct qut_table_leads *leads = &h->leads;
    if (h->version < QUT_TABLE_VERSION ? leads->standard_count != 0 : leads->standard_count > known.count)
        return fault_at(c, h->version < QUT_TABLE_VERSION ? QUT_TABLE_BAD_HEADER : QUT_TABLE_NEWER,
                        &leads->standard_count);
    c->cells[QUT_CELLS_STANDARD] = known.cells;
    c->cell_counts[QUT_CELLS_STANDARD] = leads->standard_count;
    return QUT_TABLE_OK;
}

static enum qut_table_fault check_header(struct check *c, size_t size)
{
    const struct qut_table_header *h = c->header;
    if (memcmp(h->magic, QUT_TABLE_MAGIC, sizeof h->magic) != 0)
        return fault_at(c, QUT_TABLE_BAD_MAGIC, h->magic);
    if (h->version < QUT_TABLE_VERSION_OLDEST || h->version > QUT_TABLE_VERSION)
        return fault_at(c, h->version < QUT_TABLE_VERSION ? QUT_TABLE_OLDER : QUT_TABLE_NEWER, &h->version);
    if (h->file_size != size)
        return fault_at(c, QUT_TABLE_BAD_SIZE, &h->file_size);
    const uint8_t *summed = (const uint8_t *)(&h->checksum + 1);
    if (!qut_checksum_agrees(h->checksum, qut_table_checksum(summed, size - (size_t)(summed - c->bytes))))
        return fault_at(c, QUT_TABLE_BAD_CHECKSUM, &h->checksum);
    if (h->arch == QUT_ARCH_NONE || h->arch >= QUT_ARCH_END)
        return fault_at(c, QUT_TABLE_BAD_HEADER, &h->arch);
    if (h->pc_shift > 2 || h->identity_size > sizeof h->identity)
        return fault_at(c, QUT_TABLE_BAD_HEADER, &h->pc_shift);
    uint64_t unit = (uint64_t)1 << h->pc_shift;
    if (h->text_size == 0 || h->text_size >> 32 || h->text_size & (unit - 1) || h->text_start & 63 ||
        h->text_start + h->text_size < h->text_start)
        return fault_at(c, QUT_TABLE_BAD_HEADER, &h->text_start);
    unsigned leads = (unsigned)h->leads.short_rules + h->leads.short_runs + h->leads.long_rule_leads;
    if (h->leads.short_rules == 0 || leads > QUT_LEAD_WIDE)
        return fault_at(c, QUT_TABLE_BAD_HEADER, &h->leads);
    return check_standard_cells(c);
}

// A section's entries lie at multiples of their size.
static enum qut_table_fault check_section(struct check *c, const struct qut_table_section *section, uint32_t unit,
                                          uint32_t slack)
{
    uint64_t end = (uint64_t)section->offset + section->size + slack;
    bool placed = section->offset >= sizeof *c->header && section->offset % unit == 0 && end <= c->header->file_size &&
                  section->size % unit == 0;
    return placed ? QUT_TABLE_OK : fault_at(c, QUT_TABLE_BAD_SECTION, section);
}

static enum qut_table_fault check_sections(struct check *c)
{
    const struct qut_table_header *h = c->header;
    const struct {
        const struct qut_table_section *section;
        uint32_t unit, slack;
    } all[] = {
        {&h->groups, sizeof(struct qut_table_group), 0},
        {&h->cells, sizeof(union qut_table_cell), 0},
        {&h->run_starts, sizeof(uint32_t), 0},
        {&h->wides, sizeof(uint32_t), 0},
        {&h->runs, 1, QUT_TABLE_SLACK_BYTES},
        {&h->blocks, 1, QUT_TABLE_SLACK_BYTES},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (check_section(c, all[i].section, all[i].unit, all[i].slack) != QUT_TABLE_OK)
            return QUT_TABLE_BAD_SECTION;
    uint64_t blocks = ((h->text_size >> h->pc_shift) + QUT_BLOCK_UNITS - 1) / QUT_BLOCK_UNITS;
    uint64_t groups = (blocks + QUT_GROUP_BLOCKS - 1) / QUT_GROUP_BLOCKS;
    if (h->groups.size != groups * sizeof(struct qut_table_group))
        return fault_at(c, QUT_TABLE_BAD_SECTION, &h->groups);
    if (h->blocks.size == 0)
        return fault_at(c, QUT_TABLE_BAD_SECTION, &h->blocks);
    c->cells[QUT_CELLS_OWN] = (const void *)(c->bytes + h->cells.offset);
    c->cell_counts[QUT_CELLS_OWN] = h->cells.size / (uint32_t)sizeof(union qut_table_cell);
    c->run_starts = (const void *)(c->bytes + h->run_starts.offset);
    c->run_count = h->run_starts.size ? h->run_starts.size / (uint32_t)sizeof(uint32_t) - 1 : 0;
    return QUT_TABLE_OK;
}

static bool rule_is_sane(const struct qut_rule *rule)
{
    const uint8_t registers = 64;
    if (rule->kind != QUT_RULE_FRAME || rule->flags & ~QUT_RULE_FLAGS_ALL || rule->reason || rule->origin >= registers)
        return false;
    if (rule->dex_pc_reg >= registers && rule->dex_pc_reg != QUT_NO_REGISTER)
        return false;
    if (rule->cfa.how >= QUT_CFA_HOW_END || rule->cfa.reg >= registers || rule->cfa.reg2 >= registers ||
        rule->cfa.shift > 15)
        return false;
    const struct qut_reg_rule *regs[2 + QUT_TRACKED_MAX] = {&rule->ra, &rule->sp};
    for (int i = 0; i < QUT_TRACKED_MAX; i++)
        regs[2 + i] = &rule->tracked[i];
    for (int i = 0; i < 2 + QUT_TRACKED_MAX; i++) {
        bool is_near = regs[i]->reg < QUT_SHADOW_LOG2_MIN || regs[i]->reg > QUT_SHADOW_LOG2_MAX;
        if (regs[i]->how >= QUT_REG_HOW_END || regs[i]->reg >= registers ||
            (regs[i]->how == QUT_REG_AT_SHADOW && is_near))
            return false;
    }
    return true;
}

// How many cells the rule takes that begins with this one, of `left`. 0: it is none.
static unsigned sane_rule_cells(const union qut_table_cell *cells, uint32_t left)
{
    const struct qut_rule_cell *cell = &cells->rule;
    const uint8_t registers = 64;
    bool is_sane;
    switch (cell->form) {
    case QUT_CELL_HOLE: return 1;
    case QUT_CELL_REFUSED: is_sane = cell->aux != QUT_REFUSED_NOT && cell->aux < QUT_REFUSAL_END; break;
    case QUT_CELL_FRAME:
    case QUT_CELL_DEREF: is_sane = cell->reg < registers && cell->aux < registers && (cell->flags >> 4 & 3) < 3; break;
    case QUT_CELL_LONG: {
        if (left < QUT_LONG_CELLS)
            return 0;
        struct qut_rule rule;
        memcpy(&rule, cells + 1, sizeof rule);
        return rule_is_sane(&rule) ? QUT_LONG_CELLS : 0;
    }
    default: is_sane = false;
    }
    return is_sane;
}

static enum qut_table_fault check_cells(struct check *c)
{
    const union qut_table_cell *own = c->cells[QUT_CELLS_OWN];
    const uint32_t count = c->cell_counts[QUT_CELLS_OWN];
    for (uint32_t i = 0, cells; i < count; i += cells) {
        cells = sane_rule_cells(&own[i], count - i);
        if (!cells)
            return fault_at(c, QUT_TABLE_BAD_CELL, &own[i]);
    }
    return QUT_TABLE_OK;
}

// A code may name the middle of a long rule only in a forged table. Any 16 bytes then read as some cell: harmless, as
// long as a LONG there does not reach past the cells; that is what is checked.
static bool ref_is_sane(const struct check *c, uint32_t ref, bool runs_too)
{
    if (ref & QUT_REF_RUN)
        return runs_too && (ref & ~QUT_REF_RUN) < c->run_count;
    const struct qut_cell_place place = qut_cell_place(&c->header->leads, ref);
    const uint32_t count = c->cell_counts[place.owner];
    return place.index < count && sane_rule_cells(&c->cells[place.owner][place.index], count - place.index) != 0;
}

// Most codes are of one byte, and of few values: each is judged once.
static void judge_leads(struct check *c)
{
    const unsigned count = c->header->leads.short_rules + c->header->leads.short_runs; // at most 256: check_header
    for (unsigned lead = 0; lead < count; lead++) {
        const uint8_t code[] = {0, 0, 0, (uint8_t)lead}; // as long as the longest
        const uint32_t ref = qut_code_ref(&c->header->leads, code + sizeof code);
        c->sane_leads[lead] = (uint8_t)(ref_is_sane(c, ref, false) | ref_is_sane(c, ref, true) << 1);
    }
    for (unsigned runs_too = 0; runs_too < 2; runs_too++) {
        unsigned first = 0; // at most 255
        while (first < count && c->sane_leads[first] >> runs_too & 1)
            first++;
        memset(c->first_not_sane[runs_too], (int)first, sizeof c->first_not_sane[runs_too]);
    }
}

static bool pcs_ascend(const uint8_t *pcs, uint32_t count)
{
    bool ascend = true;
    for (uint32_t i = 1; i < count; i++)
        ascend &= pcs[i] > pcs[i - 1];
    return ascend;
}

typedef uint8_t sixteen __attribute__((vector_size(16)));
// Wherever they stand. No function gives them out: how it would do so depends on the processor.
typedef uint8_t sixteen_anywhere __attribute__((vector_size(16), aligned(1), may_alias));

// Most blocks and runs: each code is one byte, pcs ascend, and no lead is one that is not sane. Sixteen rows at a time,
// as they come: how many there are is as good as random, so that to ask would cost more than to look. Reads the byte
// before, which is the table's, and up to 16 bytes past the end, which is the slack behind the last one.
static inline bool rows_are_plain(const struct check *c, const uint8_t *bytes, uint32_t size, bool runs_too)
{
    // From byte 16 - n on: n bytes of ones, then zeros.
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t but_first[16] = {0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const unsigned count = size / 2;
    const sixteen not_sane = *(const sixteen_anywhere *)(c->first_not_sane[runs_too]);
    sixteen compared = *(const sixteen_anywhere *)(but_first), wrong = {0};
    if (size & 1)
        return false;
    unsigned i = 0;
    do {
        const uint8_t *pcs = bytes + i, *codes = pcs + count;
        const sixteen rows = *(const sixteen_anywhere *)(ones + 16 - (count - i < 16 ? count - i : 16));
        wrong |= (sixteen)(*(const sixteen_anywhere *)(pcs - 1) >= *(const sixteen_anywhere *)(pcs)) & rows & compared;
        wrong |= (sixteen)(*(const sixteen_anywhere *)(codes) >= not_sane) & rows;
        compared = *(const sixteen_anywhere *)(ones);
        i += 16;
    } while (i < count);
    uint64_t halves[2];
    memcpy(halves, &wrong, sizeof halves);
    return !(halves[0] | halves[1]);
}

// The rows of a block or run that is not wide.
static enum qut_table_fault check_rows(struct check *c, const uint8_t *bytes, uint32_t size, bool runs_too,
                                       enum qut_table_fault fault)
{
    struct qut_block_view view = qut_block_view(bytes, size);
    const uint8_t *codes_start = view.pcs + view.row_count;
    if (codes_start > view.end || !pcs_ascend(view.pcs, view.row_count))
        return fault_at(c, fault, bytes);
    const uint8_t *end = view.end;
    for (uint32_t i = 0; i < view.row_count; i++) {
        if (end <= codes_start)
            return fault_at(c, fault, bytes);
        if (c->sane_leads[end[-1]] >> runs_too & 1) {
            end--;
            continue;
        }
        unsigned code_bytes = qut_code_bytes(&c->header->leads, end[-1]);
        if (code_bytes > (size_t)(end - codes_start) || (view.one_byte_codes && code_bytes != 1))
            return fault_at(c, fault, bytes);
        if (!ref_is_sane(c, qut_code_ref(&c->header->leads, end), runs_too))
            return fault_at(c, QUT_TABLE_BAD_CODE, end - 1);
        end -= code_bytes;
    }
    // Between pcs and codes stands nothing, or the one byte that makes the size odd.
    return end - codes_start <= !view.one_byte_codes ? QUT_TABLE_OK : fault_at(c, fault, bytes);
}

static enum qut_table_fault check_runs(struct check *c)
{
    const uint8_t *runs = c->bytes + c->header->runs.offset;
    if (c->header->run_starts.size == 0)
        return c->header->runs.size == 0 ? QUT_TABLE_OK : fault_at(c, QUT_TABLE_BAD_RUN, runs);
    if (c->run_starts[0] != 0 || c->run_starts[c->run_count] != c->header->runs.size)
        return fault_at(c, QUT_TABLE_BAD_RUN, c->run_starts);
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t start = c->run_starts[i], end = c->run_starts[i + 1];
        if (start >= end || end > c->header->runs.size || end - start > QUT_BLOCK_BYTES_MAX)
            return fault_at(c, QUT_TABLE_BAD_RUN, &c->run_starts[i]);
        if ((end - start) & 1 && runs[start] == 0)
            return fault_at(c, QUT_TABLE_BAD_RUN, runs + start);
        enum qut_table_fault fault = rows_are_plain(c, runs + start, end - start, false)
                                         ? QUT_TABLE_OK
                                         : check_rows(c, runs + start, end - start, false, QUT_TABLE_BAD_RUN);
        if (fault != QUT_TABLE_OK)
            return fault;
        if (qut_block_view(runs + start, end - start).pcs[0] != 0)
            return fault_at(c, QUT_TABLE_BAD_RUN, runs + start);
    }
    return QUT_TABLE_OK;
}

static enum qut_table_fault check_wide(struct check *c, const uint8_t *block, uint32_t size)
{
    const struct qut_table_header *h = c->header;
    unsigned code_bytes = qut_code_bytes(&h->leads, block[size - 1]);
    if (size < QUT_WIDE_BLOCK_HEAD + code_bytes || !ref_is_sane(c, qut_code_ref(&h->leads, block + size), true))
        return fault_at(c, QUT_TABLE_BAD_WIDE, block);
    uint32_t offset = qut_load_u32(block + 1);
    if (offset % 4 || offset > h->wides.size || h->wides.size - offset < 4)
        return fault_at(c, QUT_TABLE_BAD_WIDE, block);
    const uint8_t *wide = c->bytes + h->wides.offset + offset;
    uint32_t row_count = qut_load_u32(wide);
    if (row_count == 0 || row_count > QUT_BLOCK_UNITS || qut_wide_bytes(row_count) > h->wides.size - offset)
        return fault_at(c, QUT_TABLE_BAD_WIDE, wide);
    struct qut_wide_view view = qut_wide_view(wide);
    if (!pcs_ascend(view.pcs, row_count))
        return fault_at(c, QUT_TABLE_BAD_WIDE, wide);
    for (uint32_t i = 0; i < row_count; i++)
        if (!ref_is_sane(c, qut_load_u32(view.refs + 4 * (size_t)i), true))
            return fault_at(c, QUT_TABLE_BAD_WIDE, wide);
    return QUT_TABLE_OK;
}

// Whether a lead is a whole code, and its rule is the hole.
static bool is_hole(const struct check *c, uint8_t lead)
{
    if (lead >= c->header->leads.short_rules || !ref_is_sane(c, lead, false))
        return false;
    const struct qut_cell_place place = qut_cell_place(&c->header->leads, lead);
    return c->cells[place.owner][place.index].rule.form == QUT_CELL_HOLE;
}

static enum qut_table_fault check_blocks(struct check *c)
{
    const struct qut_table_header *h = c->header;
    const struct qut_table_group *groups = (const void *)(c->bytes + h->groups.offset);
    const uint8_t *blocks = c->bytes + h->blocks.offset;
    uint64_t block_count = ((h->text_size >> h->pc_shift) + QUT_BLOCK_UNITS - 1) / QUT_BLOCK_UNITS;
    if (!is_hole(c, blocks[0])) // in force where the text begins
        return fault_at(c, QUT_TABLE_BAD_BLOCK, blocks);
    uint64_t offset = 1;
    for (uint64_t left = block_count; left > 0; groups++) {
        const unsigned count = left < QUT_GROUP_BLOCKS ? (unsigned)left : QUT_GROUP_BLOCKS;
        if (groups->blocks_offset != offset)
            return fault_at(c, QUT_TABLE_BAD_GROUP, groups);
        for (unsigned i = 0; i < count; i++) {
            const uint32_t size = groups->block_bytes[i];
            if (size > h->blocks.size - offset)
                return fault_at(c, QUT_TABLE_BAD_GROUP, groups);
            const uint8_t *block = blocks + offset;
            if (!rows_are_plain(c, block, size, true)) {
                enum qut_table_fault fault = (size & 1) && block[0] == 0
                                                 ? check_wide(c, block, size)
                                                 : check_rows(c, block, size, true, QUT_TABLE_BAD_BLOCK);
                if (fault != QUT_TABLE_OK)
                    return fault;
            }
            offset += size;
        }
        left -= count;
    }
    return offset == h->blocks.size ? QUT_TABLE_OK : fault_at(c, QUT_TABLE_BAD_GROUP, blocks);
}

enum qut_table_fault qut_table_check(const void *bytes, size_t size, uint64_t *fault_offset)
{
    struct check c = {.bytes = bytes, .header = bytes};
    enum qut_table_fault fault = QUT_TABLE_TOO_SHORT;
    if (size >= sizeof *c.header)
        fault = check_header(&c, size);
    if (fault == QUT_TABLE_OK)
        fault = check_sections(&c);
    if (fault == QUT_TABLE_OK)
        fault = check_cells(&c);
    if (fault == QUT_TABLE_OK) {
        judge_leads(&c);
        fault = check_runs(&c);
    }
    if (fault == QUT_TABLE_OK)
        fault = check_blocks(&c);
    if (fault_offset)
        *fault_offset = c.fault_offset;
    return fault;
}
