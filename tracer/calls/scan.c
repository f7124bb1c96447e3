// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/calls/inside.h"

enum { WORD_BYTES = 8 };

static int note_lea(struct calls_work *work, uint64_t vaddr)
{
    uint64_t *lea = BASE_ADD(&work->leas);
    if (!lea)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "code");
    *lea = vaddr;
    return 0;
}

// Everything that an instruction may lead to, beside what follows it.
static int note_targets(struct calls_work *work, struct calls_region *from, const struct calls_instruction *in)
{
    if (in->flow >= CALLS_FLOW_JUMP && in->flow <= CALLS_FLOW_CALL) {
        calls_mark(&work->targets, in->target);
        bool is_own = from && in->target >= from->start && in->target < from->end;
        if (is_own && in->flow != CALLS_FLOW_CALL &&
            (in->target == from->start || in->target == from->start + from->mark_bytes))
            from->loops = true;
        if (!is_own && (in->flow == CALLS_FLOW_CONDITION || in->flow == CALLS_FLOW_LOOP)) {
            struct calls_region *to = calls_region_at(work, in->target);
            if (to && to->start == in->target)
                to->branched_to = true;
        }
        return 0;
    }
    if (work->is_fixed && in->constant)
        calls_mark(&work->targets, in->constant);
    if (!in->has_address || !in->is_lea)
        return 0;
    calls_mark(&work->targets, in->target);
    return note_lea(work, in->target);
}

// The rule in force at a place of a region.
struct cfa_cursor {
    const struct calls_work *work;
    size_t next;
    const struct qut_cfa *cfa;     // NULL: not a register and an offset
    const struct qut_reg_rule *ra; // with cfa
    bool link_is_lost;             // an instruction before has changed the link register
};

static void go_to(struct cfa_cursor *cursor, uint64_t vaddr)
{
    const struct cfi_row_list *rows = &cursor->work->rows;
    while (cursor->next < rows->count && rows->rows[cursor->next].pc_rel + cursor->work->text_start <= vaddr) {
        const struct qut_rule *rule = &cursor->work->rules.rules[rows->rows[cursor->next++].rule_id];
        cursor->cfa = rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG ? &rule->cfa : NULL;
        cursor->ra = cursor->cfa ? &rule->ra : NULL;
    }
}

// Whether the function stands as it was called: on a machine that calls with the return address in a register.
static bool has_no_frame(const struct cfa_cursor *cursor)
{
    const struct arch *arch = cursor->work->image->arch;
    return arch->ra_in_register && cursor->cfa && cursor->cfa->reg == arch->sp_reg && cursor->cfa->offset_bytes == 0;
}

// Whether the instruction's words are those at that distance from the CFA.
static bool touches(const struct cfa_cursor *cursor, const struct calls_instruction *in, int64_t cfa_bytes)
{
    const struct qut_cfa *cfa = cursor->cfa;
    bool is_sp = cfa->reg == cursor->work->image->arch->sp_reg;
    if (in->base == CALLS_BASE_NONE || (in->base == CALLS_BASE_SP) != is_sp ||
        (in->base == CALLS_BASE_FP) != (cfa->reg == cursor->work->decoder->fp_reg))
        return false;
    const int64_t at = (int64_t)cfa->offset_bytes + cfa_bytes;
    return at >= in->offset && at < in->offset + in->words * WORD_BYTES;
}

// Whether the instruction takes the return address from its register, or from where it was saved.
static bool touches_link(const struct cfa_cursor *cursor, const struct calls_instruction *in)
{
    const struct qut_reg_rule *ra = cursor->ra;
    if (in->reads_link && (!cursor->link_is_lost || (ra && ra->how == QUT_REG_SAME)))
        return true;
    return ra && ra->how == QUT_REG_AT_CFA && touches(cursor, in, ra->offset_bytes);
}

// Whether the instruction touches the word below the CFA.
static bool touches_return(const struct cfa_cursor *cursor, const struct calls_instruction *in)
{
    const struct qut_cfa *cfa = cursor->cfa;
    if (!cfa || in->is_nop || in->is_lea) // hand-written code takes the address to find what it saved below
        return false;
    bool is_sp = cfa->reg == cursor->work->image->arch->sp_reg;
    if (in->is_pop && is_sp && cfa->offset_bytes == WORD_BYTES)
        return true;
    return touches(cursor, in, -WORD_BYTES);
}

// What matters to who exchanges return addresses.
static void note_return(struct cfa_cursor *cursor, struct calls_region *region, const struct calls_instruction *in)
{
    bool calls = in->flow == CALLS_FLOW_CALL || in->flow == CALLS_FLOW_CALL_BY;
    if (!cursor->work->image->arch->ra_in_register) {
        region->reads_return |= touches_return(cursor, in);
        return;
    }
    region->reads_return |= touches_link(cursor, in);
    region->keeps_return |= calls && has_no_frame(cursor);
    region->loops_inside |= (in->flow == CALLS_FLOW_JUMP || in->flow == CALLS_FLOW_CONDITION) &&
                            in->target >= region->start && in->target <= region->start + region->mark_bytes &&
                            !has_no_frame(cursor);
    cursor->link_is_lost |= in->writes_link;
}

// The same where nothing says where the CFA is: at the first instruction it is known, and where rbp is the frame's.
struct plain_frame {
    bool has_begun, has_fp;
};

static bool touches_plain_return(struct plain_frame *frame, const struct calls_instruction *in, const uint8_t *code)
{
    static const uint8_t sets_fp[2][3] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}};
    if (in->is_nop || in->is_landing_mark)
        return false;
    const bool is_first = !frame->has_begun;
    frame->has_begun = true;
    frame->has_fp |= in->length == 3 && (memcmp(code, sets_fp[0], 3) == 0 || memcmp(code, sets_fp[1], 3) == 0);
    if (in->is_lea)
        return false;
    return (is_first && (in->is_pop || (in->base == CALLS_BASE_SP && in->offset == 0))) ||
           (frame->has_fp && in->base == CALLS_BASE_FP && in->offset == WORD_BYTES);
}

static struct base_bytes code_at(const struct calls_work *work, uint64_t start, uint64_t end)
{
    return input_image_some(work->image, start, end - start);
}

static int scan_region(struct calls_work *work, struct calls_region *region)
{
    struct base_bytes code = code_at(work, region->start, region->end);
    struct cfa_cursor cursor = {.work = work};
    struct plain_frame frame = {.has_begun = false};
    work->rows.count = 0;
    if (region->fde != UINT32_MAX && calls_rows(work, region->fde, UINT32_MAX) != 0)
        return -1;
    for (size_t at = 0; at < code.size;) {
        struct calls_instruction in;
        uint64_t vaddr = region->start + at;
        region->closed = false;
        if (!work->decoder->read((struct base_bytes){code.data + at, code.size - at}, vaddr, &in)) {
            at += work->decoder->unit_bytes;
            continue;
        }
        if (at == 0 && in.is_landing_mark)
            region->mark_bytes = in.length;
        go_to(&cursor, vaddr);
        note_return(&cursor, region, &in);
        if (region->fde == UINT32_MAX && touches_plain_return(&frame, &in, code.data + at))
            region->reads_return = true;
        // A call at the end is one that does not return.
        region->closed = in.flow == CALLS_FLOW_JUMP || in.flow == CALLS_FLOW_STOP || in.flow == CALLS_FLOW_CALL ||
                         in.flow == CALLS_FLOW_CALL_BY;
        if (note_targets(work, region, &in) != 0)
            return -1;
        at += in.length;
    }
    return 0;
}

static bool is_trap(uint8_t byte)
{
    return byte == 0xcc;
}

// Bytes that belong to nobody: the nops at their start, up to what something leads to, are room for jumps.
static int scan_between(struct calls_work *work, uint64_t start, uint64_t end, bool closed)
{
    struct base_bytes code = code_at(work, start, end);
    uint64_t gap_end = start;
    bool is_gap = closed;
    for (size_t at = 0; at < code.size;) {
        struct calls_instruction in;
        uint64_t vaddr = start + at;
        bool is_code = work->decoder->read((struct base_bytes){code.data + at, code.size - at}, vaddr, &in);
        size_t length = is_code ? in.length : work->decoder->unit_bytes;
        is_gap = is_gap && (is_trap(code.data[at]) || (is_code && in.is_nop));
        gap_end = is_gap ? vaddr + length : gap_end;
        if (is_code && note_targets(work, NULL, &in) != 0)
            return -1;
        at += length;
    }
    if (gap_end == start)
        return 0;
    struct calls_gap *gap = BASE_ADD(&work->gaps);
    if (!gap)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "code");
    *gap = (struct calls_gap){start, gap_end};
    return 0;
}

static int scan_range(struct calls_work *work, const struct input_range *range, size_t *next)
{
    uint64_t at = range->start;
    bool closed = false;
    for (; *next < work->regions.count && work->regions.items[*next].start < range->end; (*next)++) {
        struct calls_region *region = &work->regions.items[*next];
        if (region->start > at && scan_between(work, at, region->start, closed) != 0)
            return -1;
        if (scan_region(work, region) != 0)
            return -1;
        closed = region->closed && region->end >= at;
        at = region->end > at ? region->end : at;
    }
    return at < range->end ? scan_between(work, at, range->end, closed) : 0;
}

int calls_scan(struct calls_work *work)
{
    size_t next = 0;
    for (unsigned i = 0; i < work->image->exec_count; i++)
        if (scan_range(work, &work->image->exec[i], &next) != 0)
            return -1;
    return 0;
}

void calls_trim_gaps(struct calls_work *work)
{
    for (size_t i = 0; i < work->gaps.count; i++) {
        struct calls_gap *gap = &work->gaps.items[i];
        for (uint64_t vaddr = gap->start; vaddr < gap->end; vaddr++)
            if (calls_is_marked(&work->targets, vaddr))
                gap->end = vaddr;
    }
}
