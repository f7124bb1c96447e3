// SPDX-License-Identifier: Apache-2.0
// How one function is patched.
#include <string.h>

#include "tracer/calls/inside.h"

enum { SHORT_BYTES = 2, TRAP_BYTES = 1 };

static enum qut_plan_move move_of(const struct calls_instruction *in, bool is_nop)
{
    if (is_nop)
        return QUT_MOVE_SKIP;
    switch ((enum calls_flow)in->flow) {
    case CALLS_FLOW_JUMP: return QUT_MOVE_JUMP;
    case CALLS_FLOW_CONDITION: return QUT_MOVE_CONDITION;
    case CALLS_FLOW_LOOP: return QUT_MOVE_LOOP;
    case CALLS_FLOW_CALL: return QUT_MOVE_CALL;
    case CALLS_FLOW_CALL_BY: return in->has_address ? QUT_MOVE_CALL_BY_ADDRESS : QUT_MOVE_CALL_BY;
    default: return in->has_address ? QUT_MOVE_ADDRESS : QUT_MOVE_COPY;
    }
}

// The whole instructions from patch_at on that cover `wanted` bytes, or all up to the region's end. False: one of them
// cannot be moved, or is none.
static bool cover(const struct calls_work *work, const struct calls_region *region, unsigned wanted,
                  struct qut_plan_function *function)
{
    uint64_t start = region->start + function->patch_at;
    struct base_bytes code = input_image_some(work->image, start, region->end - start);
    bool all_nops = true;
    function->moved_bytes = function->instruction_count = 0;
    function->flags &= (uint8_t)~QUT_PLAN_ENDS;
    while (function->moved_bytes < wanted && function->moved_bytes < code.size) {
        struct calls_instruction in;
        struct base_bytes left = {code.data + function->moved_bytes, code.size - function->moved_bytes};
        if (!work->decoder->read(left, start + function->moved_bytes, &in)) {
            function->refusal = QUT_PLAN_UNDECODED;
            return false;
        }
        if (!in.is_movable) {
            function->refusal = QUT_PLAN_UNMOVABLE;
            return false;
        }
        const bool is_nop = in.is_nop || calls_is_sled_jump(work, start + function->moved_bytes, &in);
        function->instructions[function->instruction_count++] =
            (struct qut_plan_instruction){in.length, (uint8_t)move_of(&in, is_nop), in.operand_at, 0};
        function->moved_bytes = (uint8_t)(function->moved_bytes + in.length);
        all_nops = all_nops && is_nop;
        bool ends = !is_nop && (in.flow == CALLS_FLOW_JUMP || in.flow == CALLS_FLOW_STOP);
        bool calls = in.flow == CALLS_FLOW_CALL || in.flow == CALLS_FLOW_CALL_BY;
        // What a call returns to must not be overwritten; where it does not return, there is nothing.
        if (calls && function->moved_bytes < wanted && function->moved_bytes < code.size)
            return false;
        function->flags = (uint8_t)((function->flags & ~QUT_PLAN_ENDS) |
                                    (ends || (calls && function->moved_bytes == code.size) ? QUT_PLAN_ENDS : 0));
    }
    if (function->moved_bytes == 0)
        return false;
    function->kind = all_nops ? QUT_PLAN_NOPS : QUT_PLAN_JUMP;
    return function->moved_bytes >= wanted || (function->flags & QUT_PLAN_ENDS);
}

static bool is_free(const struct calls_work *work, uint64_t start, unsigned bytes)
{
    for (uint64_t vaddr = start + 1; vaddr < start + bytes; vaddr++)
        if (calls_is_marked(&work->targets, vaddr))
            return false;
    return true;
}

// The first gap that ends behind an address.
static size_t gap_behind(const struct calls_work *work, uint64_t vaddr)
{
    size_t low = 0, high = work->gaps.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->gaps.items[middle].end <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Takes the padding right behind the function, up to `end`.
static bool take_padding(struct calls_work *work, uint64_t from, uint64_t end)
{
    size_t i = gap_behind(work, from);
    if (i == work->gaps.count || work->gaps.items[i].start != from || work->gaps.items[i].end < end)
        return false;
    work->gaps.items[i].start = end;
    return true;
}

// Takes 5 bytes of padding that a 2-byte jump behind `from` reaches.
static bool take_island(struct calls_work *work, uint64_t from, uint64_t *pad)
{
    for (size_t i = gap_behind(work, from < INT8_MAX ? 0 : from - INT8_MAX); i < work->gaps.count; i++) {
        struct calls_gap *gap = &work->gaps.items[i];
        uint64_t lowest = from < 128 ? 0 : from - 128;
        uint64_t at = gap->start > lowest ? gap->start : lowest;
        if (at > from + INT8_MAX)
            break;
        if (at + CALLS_JUMP_BYTES > gap->end)
            continue;
        *pad = at;
        gap->start = at + CALLS_JUMP_BYTES;
        return true;
    }
    return false;
}

static void keep_code(const struct calls_work *work, struct qut_plan_function *function)
{
    function->code_bytes =
        function->moved_bytes > function->patch_bytes ? function->moved_bytes : function->patch_bytes;
    struct base_bytes code =
        input_image_some(work->image, function->entry_vaddr + function->patch_at, function->code_bytes);
    memcpy(function->code, code.data, code.size < function->code_bytes ? code.size : function->code_bytes);
    if (function->kind == QUT_PLAN_SHORT) {
        code = input_image_some(work->image, function->pad_vaddr, CALLS_JUMP_BYTES);
        memcpy(function->pad, code.data, code.size < CALLS_JUMP_BYTES ? code.size : CALLS_JUMP_BYTES);
    }
}

static void refuse(struct qut_plan_function *function, enum qut_plan_refusal why)
{
    function->kind = QUT_PLAN_REFUSED;
    function->refusal = (uint8_t)why;
    function->moved_bytes = function->instruction_count = function->patch_bytes = 0;
}

void calls_shape(struct calls_work *work, const struct calls_region *region, struct qut_plan_function *function)
{
    struct base_bytes code = input_image_some(work->image, region->start, region->end - region->start);
    struct calls_instruction first;
    if (!work->decoder->read(code, region->start, &first)) {
        refuse(function, QUT_PLAN_UNDECODED);
        return;
    }
    // Where indirect branches have to land, the mark stays. What has signed the return address there is undone in the
    // thunk, and done again.
    function->patch_at = first.is_landing_mark && code.size > first.length ? first.length : 0;
    function->flags |= function->patch_at ? first.signs : 0;
    const unsigned jump_bytes = work->decoder->jump_bytes;
    uint64_t start = region->start + function->patch_at, end = start + jump_bytes;
    if (is_free(work, start, jump_bytes) && cover(work, region, jump_bytes, function) &&
        (end <= region->end || take_padding(work, region->end, end))) {
        function->patch_bytes = (uint8_t)jump_bytes;
        function->refusal = QUT_PLAN_OK;
        keep_code(work, function);
        return;
    }
    if (jump_bytes == work->decoder->unit_bytes) // nothing shorter would do
        refuse(function, function->refusal != QUT_PLAN_OK ? function->refusal : QUT_PLAN_UNMOVABLE);
    else
        function->kind = QUT_PLAN_KIND_END; // later
}

void calls_shape_late(struct calls_work *work, struct qut_plan_function *function)
{
    const struct calls_region *region = calls_region_at(work, function->entry_vaddr);
    uint64_t start = function->entry_vaddr + function->patch_at;
    function->refusal = QUT_PLAN_UNMOVABLE;
    bool fits = region->end - start >= SHORT_BYTES && is_free(work, start, SHORT_BYTES);
    if (fits && cover(work, region, SHORT_BYTES, function) &&
        take_island(work, start + SHORT_BYTES, &function->pad_vaddr)) {
        function->kind = QUT_PLAN_SHORT;
        function->patch_bytes = SHORT_BYTES;
    } else if (cover(work, region, TRAP_BYTES, function)) {
        function->kind = QUT_PLAN_TRAP;
        function->patch_bytes = TRAP_BYTES;
    } else {
        refuse(function, function->refusal);
        return;
    }
    function->refusal = QUT_PLAN_OK;
    keep_code(work, function);
}
